#include "tools/render_tables/records.h"

#include <algorithm>
#include <fstream>

namespace nsa::tables {
namespace {

std::string sourceOf(const Json &record) {
  const auto machine = record.find("machine");
  return machine != record.end() && machine->is_object() ? machine->value("source", "") : record.value("source", "");
}

// nsa_source_id() of a tree without git is no commit.
bool isCommit(const std::string &source) {
  return source.size() >= 7 && source.find_first_not_of("0123456789abcdef") == std::string::npos;
}

} // namespace

Result<const Json *> Records::read(const std::string &name) {
  if (const auto found = known.find(name); found != known.end())
    return &found->second;
  const bool isPack = name.starts_with("packs/");
  const std::filesystem::path path = root / (isPack ? "cache" : "bench/results") / (name + ".json");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Status::error(ErrorCode::kIoError, path.string() + " cannot be read");
  Json record = Json::parse(file, nullptr, false);
  if (!record.is_object())
    return Status::error(ErrorCode::kIoError, path.string() + " is not a JSON object");
  if (!isPack)
    NSA_RETURN_IF_ERROR(checkSource(path.string(), record));
  return &(known[name] = std::move(record));
}

Status Records::checkSource(const std::string &name, const Json &record) {
  const std::string source = sourceOf(record);
  if (source.empty())
    return Status::error(ErrorCode::kIoError, name + " has no source: it does not say which commit it measured");
  if (source.ends_with("-dirty"))
    return Status::error(ErrorCode::kIoError, name + " was measured in a tree with changes that are not committed (" +
                                                  source + "): commit them, build and measure again");
  if (isCommit(source) && history.isKnown() && !history.commitsSince(source))
    return Status::error(ErrorCode::kIoError,
                         name + " was measured at " + source + ", which HEAD does not descend from: measure again");
  return Status::ok();
}

std::vector<std::string> Records::find(const std::string &bench) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto &folder : std::filesystem::directory_iterator(root / "bench/results", error))
    for (const auto &file : std::filesystem::directory_iterator(folder.path(), error))
      if (file.path().extension() == ".json" && (bench.empty() || file.path().stem() == bench))
        names.push_back(folder.path().filename().string() + "/" + file.path().stem().string());
  std::ranges::sort(names);
  return names;
}

std::optional<int64_t> Records::age(const Json &record) {
  const std::string source = sourceOf(record);
  return isCommit(source) && history.isKnown() ? history.commitsSince(source) : std::nullopt;
}

} // namespace nsa::tables
