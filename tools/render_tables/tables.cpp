#include "tools/render_tables/tables.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace nsa::tables {
namespace {

constexpr const char *kDefault = "nsa default", *kTuned = "nsa tuned";

std::string cell(const Json &row, const std::string &field) {
  const auto found = row.find(field);
  return found == row.end() ? "-" : numberText(*found);
}

// The titles of the columns that the bench has named, then a row for each result.
std::vector<std::vector<std::string>> plainCells(const Json &report) {
  std::vector<std::vector<std::string>> rows(1);
  for (const Json &column : report["table"])
    rows.front().push_back(column.value("title", ""));
  for (const Json &result : report["results"]) {
    std::vector<std::string> &row = rows.emplace_back();
    for (const Json &column : report["table"])
      row.push_back(cell(result, column.value("field", "")));
  }
  return rows;
}

} // namespace

std::string tableRow(const std::vector<std::string> &cells) {
  std::string text = "|";
  for (const std::string &one : cells)
    text += " " + one + " |";
  return text + "\n";
}

std::string tableHead(const std::vector<std::string> &titles) {
  std::string rule = "|";
  for (size_t i = 0; i < titles.size(); ++i)
    rule += "---|";
  return tableRow(titles) + rule + "\n";
}

std::string numberText(const Json &value) {
  if (value.is_null())
    return "-";
  if (value.is_string())
    return value;
  if (!value.is_number_float())
    return value.dump();
  const double number = value, size = std::fabs(number);
  char text[32];
  if (size > 0 && size < 0.01)
    std::snprintf(text, sizeof text, "%.1e", number);
  else
    std::snprintf(text, sizeof text, "%.*f", size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0, number);
  return text;
}

std::string machineLine(const Json &report) {
  const Json &machine = report["machine"], &device = machine["device"];
  std::string text;
  if (device.contains("threads"))
    text = machine.value("processor", "") + ", " + device.value("threads", "") + " threads";
  else
    text = device.value("name", "") + (device.contains("driver") ? ", driver " + device.value("driver", "") : "");
  if (report.contains("fma_peak"))
    text += ", FMA peak " + cell(report["fma_peak"], "gflops") + " GFLOP/s";
  if (report.contains("roof"))
    text += ", roof " + cell(report["roof"], "tflops") + " TFLOP/s and " +
            cell(report["roof"], "terabytes_per_second") + " TB/s";
  if (report.contains("peers"))
    for (const auto &[name, version] : report["peers"].items())
      if (name != "device" && version.is_string())
        text += ", " + name + " " + version.get<std::string>();
  if (machine.contains("source")) // a record of other projects' programs has none
    text += ", source " + machine.value("source", "");
  return text + ", " + machine.value("date", "");
}

std::string attentionTable(const Json &report) {
  // The shapes in the order in which they were measured, and the implementations that were measured beside ours.
  std::vector<Json> shapes;
  std::vector<std::string> peers;
  std::map<std::string, std::map<std::string, Json>> rows; // by shape and implementation
  for (const Json &row : report["results"]) {
    Json shape;
    for (const char *field : {"op", "dtype", "query_heads", "kv_heads", "qk_dim", "v_dim", "tokens", "window"})
      shape[field] = row.value(field, Json());
    if (!rows.count(shape.dump()))
      shapes.push_back(shape);
    const std::string who = row.value("implementation", "");
    if (who != kDefault && who != kTuned && std::find(peers.begin(), peers.end(), who) == peers.end())
      peers.push_back(who);
    rows[shape.dump()][who] = row;
  }
  std::vector<std::string> titles = {"operator", "type",       "heads",    "head sizes",    "tokens",
                                     "window",   "default ms", "tuned ms", "tuned TFLOP/s", "% of roof"};
  for (const std::string &peer : peers)
    titles.push_back(peer + " ms");
  std::string text = tableHead(titles);
  for (const Json &shape : shapes) {
    std::map<std::string, Json> &own = rows[shape.dump()];
    std::vector<std::string> cells = {cell(shape, "op"),
                                      cell(shape, "dtype"),
                                      cell(shape, "query_heads") + "/" + cell(shape, "kv_heads"),
                                      cell(shape, "qk_dim") + "/" + cell(shape, "v_dim"),
                                      cell(shape, "tokens"),
                                      shape["window"] == 0 ? "-" : cell(shape, "window"),
                                      cell(own[kDefault], "median_ms"),
                                      cell(own[kTuned], "median_ms"),
                                      cell(own[kTuned], "tflops"),
                                      cell(own[kTuned], "percent_of_roof")};
    for (const std::string &peer : peers)
      cells.push_back(cell(own[peer], "median_ms"));
    text += tableRow(cells);
  }
  return text;
}

std::string plainTable(const Json &report) {
  const std::vector<std::vector<std::string>> rows = plainCells(report);
  std::string text = tableHead(rows.front());
  for (size_t i = 1; i < rows.size(); ++i)
    text += tableRow(rows[i]);
  return text;
}

std::string terminalTable(const Json &report) {
  const std::vector<std::vector<std::string>> rows = plainCells(report);
  std::vector<size_t> widths(rows.front().size());
  for (const std::vector<std::string> &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const std::vector<std::string> &row : rows) {
    std::string padded;
    for (size_t i = 0; i < row.size(); ++i)
      padded += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    padded.erase(padded.find_last_not_of(' ') + 1);
    text += padded + "\n";
  }
  return text;
}

} // namespace nsa::tables
