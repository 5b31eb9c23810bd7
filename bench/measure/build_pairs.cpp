#include "bench/measure/build_pairs.h"

#include "bench/measure/timing.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>

namespace nsa::bench {
namespace {

using Json = nlohmann::ordered_json;

// What the rows of a bench's record measure: the field with the time, and the fields that say what was timed.
struct RecordKind {
  std::string_view name, time, unit;
  std::vector<std::string_view> what;
};

const std::vector<RecordKind> &recordKinds() {
  static const std::vector<RecordKind> kinds = {
      {"attention", "median_ms", "ms", {"op", "heads", "dtype", "tokens", "implementation"}},
      {"decode", "us_total", "us", {"heads", "dtype", "batch", "new_tokens", "page_size", "S"}},
      {"launch", "median_us", "us", {"measure", "threads", "clock"}},
      {"prefill", "median_ms", "ms", {"op", "heads", "dtype", "tokens", "implementation"}},
      {"startup", "median_ms", "ms", {"measure"}},
  };
  return kinds;
}

// The kind of a record's file: `attention_nsa128` is of the kind `attention`.
const RecordKind *kindOf(std::string_view file) {
  for (const RecordKind &kind : recordKinds())
    if (file == kind.name || file.starts_with(std::string(kind.name) + "_"))
      return &kind;
  return nullptr;
}

std::string whatOf(const RecordKind &kind, const Json &row) {
  std::string text;
  for (const std::string_view field : kind.what) {
    const auto value = row.find(std::string(field));
    if (value == row.end() || value->is_null())
      continue;
    if (!text.empty())
      text += ' ';
    if (!value->is_string())
      text += std::string(field) + '=';
    text += value->is_string() ? value->get<std::string>() : value->dump();
  }
  return text;
}

std::optional<double> timeOf(const RecordKind &kind, const Json &row) {
  const auto value = row.find(std::string(kind.time));
  if (value == row.end() || !value->is_number() || value->get<double>() <= 0)
    return std::nullopt;
  return value->get<double>();
}

Result<std::map<std::string, Json>> readRecords(const std::filesystem::path &folder) {
  std::map<std::string, Json> records;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".json")
      continue;
    std::ifstream file(entry.path());
    Json record = Json::parse(file, nullptr, false);
    if (record.is_discarded() || !record.contains("machine") || !record.contains("results"))
      return Status::invalid("record", entry.path().string(), "must be a record of a bench: machine, results");
    records.emplace(entry.path().stem().string(), std::move(record));
  }
  if (error)
    return Status::error(ErrorCode::kIoError, folder.string() + ": " + error.message());
  return records;
}

// One measured thing over the rounds.
struct Series {
  std::string_view unit;
  std::vector<double> old, fresh, ratios;
};

// The first value of a fact, which all later records must repeat.
class SameFact {
public:
  explicit SameFact(std::string name) : name(std::move(name)) {}
  Status add(const std::string &value) {
    if (!text)
      text = value;
    if (*text != value)
      return Status::invalid(name, value, "must be that of the other records, " + *text);
    return Status::ok();
  }
  std::string get() const { return text.value_or(""); }

private:
  std::string name;
  std::optional<std::string> text;
};

std::string deviceOf(const Json &record) {
  const Json &machine = record.at("machine");
  const auto device = machine.find("device");
  return device == machine.end() ? "" : device->value("key", device->value("name", ""));
}

} // namespace

Result<std::vector<BuildRound>> readRounds(const std::string &folder) {
  const std::filesystem::path root(folder);
  std::vector<int> numbers;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(root / "new", error)) {
    const std::string name = entry.path().filename().string();
    int number = 0;
    const auto [end, trouble] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (trouble != std::errc() || end != name.data() + name.size())
      return Status::invalid("round", name, "must be a number: rounds are folders such as " + folder + "/new/1");
    numbers.push_back(number);
  }
  if (error)
    return Status::error(ErrorCode::kIoError, (root / "new").string() + ": " + error.message());
  std::sort(numbers.begin(), numbers.end());
  std::vector<BuildRound> rounds;
  for (const int number : numbers) {
    BuildRound round;
    NSA_ASSIGN_OR_RETURN(round.old, readRecords(root / "old" / std::to_string(number)));
    NSA_ASSIGN_OR_RETURN(round.fresh, readRecords(root / "new" / std::to_string(number)));
    rounds.push_back(std::move(round));
  }
  return rounds;
}

Result<BuildPairs> pairBuilds(const std::vector<BuildRound> &rounds) {
  SameFact device("device"), oldSource("the old build's source"), newSource("the new build's source");
  std::map<std::pair<std::string, std::string>, Series> all;
  std::vector<std::pair<std::string, std::string>> order;
  int unpaired = 0;
  BuildPairs pairs;
  for (const BuildRound &round : rounds) {
    for (const auto &[records, source] : {std::pair(&round.old, &oldSource), std::pair(&round.fresh, &newSource)})
      for (const auto &[name, record] : *records) {
        NSA_RETURN_IF_ERROR(device.add(deviceOf(record)));
        NSA_RETURN_IF_ERROR(source->add(record.at("machine").value("source", "")));
      }
    for (const auto &[name, record] : round.fresh) {
      pairs.facts["machine"] = record.at("machine");
      const RecordKind *kind = kindOf(name);
      const auto partner = round.old.find(name);
      if (kind == nullptr || partner == round.old.end()) {
        ++unpaired;
        continue;
      }
      std::map<std::string, double> before;
      for (const Json &row : partner->second.at("results"))
        if (const std::optional<double> time = timeOf(*kind, row))
          before.emplace(whatOf(*kind, row), *time);
      for (const Json &row : record.at("results")) {
        const std::string what = whatOf(*kind, row);
        const std::optional<double> time = timeOf(*kind, row);
        const auto found = before.find(what);
        if (!time || found == before.end()) {
          ++unpaired;
          continue;
        }
        const auto [place, isNew] = all.try_emplace({name, what});
        if (isNew)
          order.push_back(place->first);
        Series &series = place->second;
        series.unit = kind->unit;
        series.old.push_back(found->second);
        series.fresh.push_back(*time);
        series.ratios.push_back(*time / found->second);
      }
    }
  }
  if (order.empty())
    return Status::invalid("rounds", std::to_string(rounds.size()),
                           "must have a measurement that both builds made in one round");
  pairs.facts["old"] = oldSource.get();
  pairs.facts["new"] = newSource.get();
  pairs.facts["rounds"] = rounds.size();
  pairs.facts["unpaired"] = unpaired;
  for (const auto &key : order) {
    const Series &series = all.at(key);
    const auto [least, greatest] = std::minmax_element(series.ratios.begin(), series.ratios.end());
    pairs.rows.push_back({{"record", key.first},
                          {"what", key.second},
                          {"unit", series.unit},
                          {"rounds", series.ratios.size()},
                          {"old", median(series.old)},
                          {"new", median(series.fresh)},
                          {"ratio", median(series.ratios)},
                          {"least", *least},
                          {"greatest", *greatest}});
  }
  return pairs;
}

} // namespace nsa::bench
