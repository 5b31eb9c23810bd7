#include "tools/render_tables/records.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace nsa::tables {
namespace {

constexpr const char *kMeasuredFolders =
    "compiler templates runtime autotune cache bench ':!bench/results' ':!cache/packs'";

// A member's text; "" where the object has none or the member is no text.
std::string textOf(const Json &object, const char *member) {
  const auto found = object.is_object() ? object.find(member) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Status unfit(const std::string &file, const std::string &why) {
  return Status::error(ErrorCode::kIoError, file + " " + why);
}

bool isPack(const std::string &name) { return name.starts_with("packs/"); }

// nsa_source_id() of a tree without git is no commit.
bool isCommit(const std::string &source) {
  return source.size() >= 7 && source.find_first_not_of("0123456789abcdef") == std::string::npos;
}

} // namespace

Records::Records(std::filesystem::path folder)
    : root(std::move(folder)), hasHistory(askGit("rev-parse --is-shallow-repository") == "false\n") {}

std::optional<int64_t> Records::commitsSince(const std::string &commit) {
  const auto [found, isNew] = counted.try_emplace(commit);
  if (isNew && askGit("merge-base --is-ancestor " + commit + " HEAD"))
    if (const auto text = askGit("rev-list --count " + commit + "..HEAD -- " + kMeasuredFolders))
      found->second = std::strtoll(text->c_str(), nullptr, 10);
  return found->second;
}

std::optional<std::string> Records::askGit(const std::string &arguments) const {
  std::string quoted;
  for (const char character : root.string())
    quoted += character == '\'' ? "'\\''" : std::string(1, character);
  FILE *pipe = popen(("git -C '" + quoted + "' " + arguments + " 2>/dev/null").c_str(), "r");
  if (!pipe)
    return std::nullopt;
  std::string text;
  char buffer[256];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, count);
  return pclose(pipe) == 0 ? std::optional(text) : std::nullopt;
}

Result<const Json *> Records::read(const std::string &name) {
  if (const auto found = known.find(name); found != known.end())
    return &found->second;
  const std::filesystem::path path = root / (isPack(name) ? "cache" : "bench/results") / (name + ".json");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return unfit(path.string(), "cannot be read");
  Json record = Json::parse(file, nullptr, false);
  if (!record.is_object())
    return unfit(path.string(), "is not a JSON object");
  // The machine's commit says nothing of a pack, which is of the commits that it names.
  if (isPack(name) && !record.contains("sources"))
    return unfit(path.string(), "has no sources: it does not say of which commits it is");
  NSA_RETURN_IF_ERROR(checkSources(path.string(), record));
  return &(known[name] = std::move(record));
}

std::vector<Source> Records::sourcesOf(const Json &record) {
  const auto listed = record.find("sources");
  if (listed == record.end()) {
    const auto machine = record.find("machine");
    const Json &holder = machine != record.end() && machine->is_object() ? *machine : record;
    return {{textOf(holder, "source"), textOf(holder, "date"), "", ""}};
  }
  std::vector<Source> sources;
  for (const Json &source : *listed)
    sources.push_back(
        {textOf(source, "commit"), textOf(source, "date"), textOf(source, "what"), textOf(source, "repository")});
  return sources;
}

Status Records::checkSources(const std::string &name, const Json &record) {
  const std::vector<Source> sources = sourcesOf(record);
  if (sources.empty())
    return unfit(name, "has no source: its sources are an empty list");
  for (const Source &source : sources) {
    NSA_RETURN_IF_ERROR(checkSource(name, source));
    if (record.contains("sources") && (!isCommit(source.commit) || source.date.empty() || source.what.empty()))
      return unfit(name, "has a source with commit = '" + source.commit + "', date = '" + source.date + "', what = '" +
                             source.what +
                             "': the first must be one commit in hexadecimal digits, and none may be empty");
  }
  return Status::ok();
}

Status Records::checkSource(const std::string &name, const Source &source) {
  const std::string &commit = source.commit;
  if (commit.empty())
    return unfit(name, "has no source: it does not say which commit it measured");
  if (commit.ends_with("-dirty"))
    return unfit(name, "was measured in a tree with changes that are not committed (" + commit +
                           "): commit them, build and measure again");
  if (source.repository.empty() && isCommit(commit) && hasHistory && !commitsSince(commit))
    return unfit(name, "was measured at " + commit + ", which HEAD does not descend from: measure again");
  return Status::ok();
}

std::vector<std::string> Records::find(const std::string &bench) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto &folder : std::filesystem::directory_iterator(root / "bench/results", error))
    for (const auto &file : std::filesystem::directory_iterator(folder.path(), error))
      if (file.path().extension() == ".json" && (bench.empty() || file.path().stem() == bench))
        names.push_back(folder.path().filename().string() + "/" + file.path().stem().string());
  if (bench.empty())
    for (const auto &file : std::filesystem::directory_iterator(root / "cache/packs", error))
      if (file.path().extension() == ".json")
        names.push_back("packs/" + file.path().stem().string());
  std::ranges::sort(names);
  return names;
}

std::optional<int64_t> Records::age(const Source &source) {
  return isCommit(source.commit) && hasHistory ? commitsSince(source.commit) : std::nullopt;
}

std::optional<int64_t> Records::age(const Json &record) {
  std::optional<int64_t> oldest = 0;
  for (const Source &source : sourcesOf(record))
    if (const std::optional<int64_t> one = age(source); oldest)
      oldest = one ? std::max(*oldest, *one) : one;
  return oldest;
}

} // namespace nsa::tables
