#include "bench/measure/bench_report.h"

#include "bench/measure/machine_facts.h"
#include "runtime/base/text.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

namespace nsa::bench {
namespace {

constexpr std::string_view kFieldSign = " = "; // between a column's title and its field

// Enough digits to compare, few enough to read in a diff.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value))
    return value;
  const double unit = std::pow(10.0, 3 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * unit) / unit;
}

std::string csvCell(const nlohmann::ordered_json &value) {
  if (value.is_null())
    return "";
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n") == std::string::npos)
    return text;
  std::string quoted = "\"";
  for (const char character : text)
    quoted += character == '"' ? "\"\"" : std::string(1, character);
  return quoted + "\"";
}

// The fields of all rows, each in the place where it first appears.
std::vector<std::string> fieldsOf(const nlohmann::ordered_json &rows) {
  std::vector<std::string> fields;
  for (const auto &row : rows)
    for (const auto &[field, unused] : row.items())
      if (std::find(fields.begin(), fields.end(), field) == fields.end())
        fields.push_back(field);
  return fields;
}

std::string toCsv(const nlohmann::ordered_json &rows, const std::vector<std::string> &fields) {
  std::string csv = joined(fields, ",") + "\n";
  for (const auto &row : rows)
    csv +=
        joined(fields, ",", [&](const std::string &field) { return row.contains(field) ? csvCell(row[field]) : ""; }) +
        "\n";
  return csv;
}

Status replaceFile(const std::filesystem::path &path, const std::string &text) {
  const std::filesystem::path draft = path.string() + ".new";
  std::ofstream file(draft, std::ios::binary);
  file << text;
  file.close();
  std::error_code error;
  if (file)
    std::filesystem::rename(draft, path, error);
  return file && !error ? Status::ok() : Status::error(ErrorCode::kIoError, path.string() + " cannot be written");
}

} // namespace

Result<BenchReport> BenchReport::create(std::string folder, std::string name, const nlohmann::ordered_json &facts,
                                        const Table &table, Csv csv) {
  std::error_code error;
  if (!folder.empty())
    std::filesystem::create_directories(folder, error);
  if (error)
    return Status::error(ErrorCode::kIoError, folder + ": " + error.message());
  BenchReport report;
  report.folder = std::move(folder);
  report.name = std::move(name);
  report.csv = std::move(csv);
  report.json = facts;
  for (const std::string &column : table) {
    const size_t sign = column.find(kFieldSign);
    const std::string field = sign == std::string::npos ? column : column.substr(sign + kFieldSign.size());
    report.json["table"].push_back({{"title", column.substr(0, sign)}, {"field", field}});
  }
  report.json["results"] = nlohmann::ordered_json::array();
  NSA_RETURN_IF_ERROR(report.write());
  return report;
}

Result<BenchReport> BenchReport::create(nsa_engine *engine, std::string folder, std::string name,
                                        const nlohmann::ordered_json &facts, const Table &table, Csv csv) {
  nlohmann::ordered_json all;
  NSA_ASSIGN_OR_RETURN(all["machine"], machineFacts(engine));
  all.update(facts);
  return create(std::move(folder), std::move(name), all, table, std::move(csv));
}

Status BenchReport::add(nlohmann::ordered_json row) {
  for (auto &[field, value] : row.items())
    if (value.is_number_float())
      value = rounded(value.get<double>());
  json["results"].push_back(std::move(row));
  return write();
}

Status BenchReport::setFact(const std::string &fact, nlohmann::ordered_json value) {
  json[fact] = std::move(value);
  return write();
}

Status BenchReport::write() const {
  if (folder.empty())
    return Status::ok();
  const std::filesystem::path base = std::filesystem::path(folder) / name;
  NSA_RETURN_IF_ERROR(replaceFile(base.string() + ".json", json.dump(1) + "\n"));
  const nlohmann::ordered_json &rows = json["results"];
  if (csv.columns.empty())
    return replaceFile(base.string() + ".csv", toCsv(rows, fieldsOf(rows)));
  std::map<std::string, nlohmann::ordered_json> files;
  for (const nlohmann::ordered_json &row : rows)
    files[row.value(csv.fileField, name)].push_back(row);
  for (const auto &[file, own] : files)
    NSA_RETURN_IF_ERROR(replaceFile(std::filesystem::path(folder) / (file + ".csv"), toCsv(own, csv.columns)));
  return Status::ok();
}

} // namespace nsa::bench
