#include "bench/measure/speed_record.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace nsa::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kHint =
    "find what made the kernel slow; where that is wanted, record anew: nsa_bench_speed --results bench/results/cpu";

// What says which measurement a row is of.
constexpr const char *kKey[] = {"op", "features", "heads", "tokens"};

const Json *findRow(const Json &record, const Json &row) {
  for (const Json &candidate : record["results"])
    if (std::ranges::all_of(
            kKey, [&](const char *field) { return candidate.value(field, Json()) == row.value(field, Json()); }))
      return &candidate;
  return nullptr;
}

std::string ratioText(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", ratio);
  return text;
}

std::string machineText(const Json &record) {
  const Json machine = record.value("machine", Json::object());
  return machine.value("processor", "") + ", source " + machine.value("source", "");
}

bool isRecord(const Json &json) {
  if (!json.is_object() || !json.contains("machine") || !json.contains("results") || !json["results"].is_array())
    return false;
  for (const Json &row : json["results"])
    if (!row.is_object() || !row.contains("times_plain") || !row["times_plain"].is_number())
      return false;
  return true;
}

} // namespace

Status compareWithRecord(const Json &measured, const Json &record, const std::string &path) {
  std::string faults;
  for (const Json &row : measured["results"]) {
    const std::string kernel = row.value("op", "") + " on " + row.value("features", "");
    const Json *recorded = findRow(record, row);
    if (!recorded) {
      faults += "\n  " + kernel + " has no row in the record";
      continue;
    }
    const double is = row.value("times_plain", 0.0), was = recorded->value("times_plain", 0.0);
    if (is < kLeastOfRecord * was)
      faults += "\n  " + kernel + " is " + ratioText(is) +
                " times as fast as the plain loop, which is less than half of the " + ratioText(was) +
                " times recorded: " + row.value("template", "") + " " + row.value("config", "");
  }
  if (faults.empty())
    return Status::ok();
  return Status::error(ErrorCode::kInternal,
                       "measured on " + machineText(measured) + "; " + path + " is of " + machineText(record) + faults,
                       kHint);
}

Status compareWithRecord(const Json &measured, const std::string &path) {
  std::ifstream file(path);
  if (!file)
    return Status::error(ErrorCode::kIoError, path + " cannot be read",
                         "--against names what nsa_bench_speed --results FOLDER wrote as FOLDER/speed.json");
  const Json record = Json::parse(file, nullptr, false);
  if (!isRecord(record))
    return Status::invalid("--against", path, "must be a file that nsa_bench_speed wrote");
  const std::string source = record["machine"].value("source", "");
  if (source.ends_with("-dirty"))
    return Status::invalid("source of " + path, "'" + source + "'", "must be a commit", "record what was committed");
  return compareWithRecord(measured, record, path);
}

} // namespace nsa::bench
