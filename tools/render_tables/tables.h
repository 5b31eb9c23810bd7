// Makes tables from the JSON of one bench run: for the documentation's pages, and for benches that print their results.
// Thread-safety: tables.h has only pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tables {

using Json = nlohmann::ordered_json;

// A row of a Markdown table, and the two lines at the head of the table.
std::string tableRow(const std::vector<std::string> &cells);
std::string tableHead(const std::vector<std::string> &titles);
// Returns the text of a table cell: a number with three digits, or "-" for null.
std::string numberText(const Json &value);
// Returns a line that says where the numbers are from: "NVIDIA H200, driver 13.0, source 755d67d1c2aa, 2026-11-21".
std::string machineLine(const Json &report);
// Returns a table with a row for each shape: the times of this library's default and tuned kernels, and the times of
// every other implementation.
std::string attentionTable(const Json &report);
// A table with the columns that the bench has named, and a row for each result.
std::string plainTable(const Json &report);
// Prints a table for a terminal, with aligned columns and titles on top.
std::string terminalTable(const Json &report);

} // namespace nsa::tables
