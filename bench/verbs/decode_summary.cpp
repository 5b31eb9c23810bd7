#include "bench/verbs/decode_summary.h"

#include "runtime/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>
#include <vector>

namespace nsa::bench {
namespace {

constexpr const char *kRequired[] = {"S", "ms_total", "ms_cmp", "ms_sel", "ms_win", "reads_actual", "reads_expected"};
constexpr const char *kOptional[] = {"reads_actual_decode", "reads_expected_decode"};

constexpr double kGreatestCount = 9007199254740991; // doubles hold every whole number up to it

std::string trimmed(const std::string &text) { return std::string(trim(text)); }

std::vector<std::string> cellsOf(const std::string &line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');)
    cells.push_back(trimmed(cell));
  if (!line.empty() && line.back() == ',')
    cells.emplace_back();
  return cells;
}

// One row by its columns' names, each value a number that is not negative.
using Row = std::map<std::string, double>;

Status readCell(const std::string &place, const std::string &column, const std::string &cell, Row &row) {
  double value = 0;
  const char *end = cell.data() + cell.size();
  const auto [stopped, trouble] = std::from_chars(cell.data(), end, value);
  if (cell.empty() || trouble != std::errc() || stopped != end || !std::isfinite(value) || value < 0)
    return Status::invalid(place + " " + column, cell, "must be a number from 0 on");
  if (column == "ms_total" && value == 0)
    return Status::invalid(place + " " + column, cell, "must be greater than 0: the branches are shares of it");
  if (!column.starts_with("ms_") && (value != std::floor(value) || value > kGreatestCount))
    return Status::invalid(place + " " + column, cell, "must be a whole number below 2^53");
  row[column] = value;
  return Status::ok();
}

std::string countText(const Row &row, const std::string &column) {
  const auto found = row.find(column);
  return found == row.end() ? "-" : std::to_string(static_cast<long long>(found->second));
}

nlohmann::ordered_json summaryOf(const Row &row) {
  const double total = row.at("ms_total");
  return {{"S", static_cast<int64_t>(row.at("S"))},
          {"ms_total", total},
          {"percent_cmp", 100 * row.at("ms_cmp") / total},
          {"percent_sel", 100 * row.at("ms_sel") / total},
          {"percent_win", 100 * row.at("ms_win") / total},
          {"reads", countText(row, "reads_actual") + "/" + countText(row, "reads_expected")},
          {"reads_decode", countText(row, kOptional[0]) + "/" + countText(row, kOptional[1])}};
}

} // namespace

Result<nlohmann::ordered_json> summarizeDecode(const std::string &name, const std::string &csv) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> header = cellsOf(line);
  for (const char *column : kRequired)
    if (std::count(header.begin(), header.end(), column) != 1)
      return Status::invalid(
          name, trimmed(line), "its first line must name the column " + std::string(column) + " once",
          "a decoding bench writes S, ms_total, ms_cmp, ms_sel, ms_win, reads_actual, reads_expected");
  for (const char *column : kOptional)
    if (std::count(header.begin(), header.end(), column) > 1)
      return Status::invalid(name, trimmed(line), "must name the column " + std::string(column) + " at most once");

  nlohmann::ordered_json summary;
  for (const auto &[title, field] :
       {std::pair("S", "S"), std::pair("ms total", "ms_total"), std::pair("cmp %", "percent_cmp"),
        std::pair("sel %", "percent_sel"), std::pair("win %", "percent_win"),
        std::pair("reads actual/expected", "reads"), std::pair("decode only", "reads_decode")})
    summary["table"].push_back({{"title", title}, {"field", field}});
  summary["results"] = nlohmann::ordered_json::array();
  for (int number = 2; std::getline(lines, line); ++number) {
    if (trimmed(line).empty())
      continue;
    const std::string place = name + ":" + std::to_string(number);
    const std::vector<std::string> cells = cellsOf(line);
    if (cells.size() != header.size())
      return Status::invalid(place, trimmed(line),
                             "must have " + std::to_string(header.size()) + " cells, as the first line has");
    Row row;
    for (size_t i = 0; i < cells.size(); ++i) {
      const auto is = [&](const char *column) { return header[i] == column; };
      if (std::any_of(std::begin(kRequired), std::end(kRequired), is) ||
          std::any_of(std::begin(kOptional), std::end(kOptional), is))
        NSA_RETURN_IF_ERROR(readCell(place, header[i], cells[i], row));
    }
    summary["results"].push_back(summaryOf(row));
  }
  if (summary["results"].empty())
    return Status::invalid(name, "", "must have a row below its first line");
  return summary;
}

} // namespace nsa::bench
