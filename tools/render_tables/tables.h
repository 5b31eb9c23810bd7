// Tables from the JSON of one bench run: those of the pages, and the ones that a bench prints.
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tables {

using Json = nlohmann::ordered_json;

// A row of a Markdown table, and the first two lines of one.
std::string tableRow(const std::vector<std::string> &cells);
std::string tableHead(const std::vector<std::string> &titles);
// A cell: three digits of a number, "-" for null.
std::string numberText(const Json &value);
// "NVIDIA H200, driver 13.0, source 755d67d1c2aa, 2026-11-21": where and of what the numbers are.
std::string machineLine(const Json &report);
// A row for each shape: our times with the default and the tuned kernel, and beside them every other implementation's.
std::string attentionTable(const Json &report);
// The columns that the bench has named, a row for each result.
std::string plainTable(const Json &report);
// The same for a terminal: columns in line, titles on top.
std::string terminalTable(const Json &report);

} // namespace nsa::tables
