#include "tools/render_tables/history.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace nsa::tables {
namespace {

constexpr const char *kMeasuredFolders =
    "compiler templates runtime autotune cache bench ':!bench/results' ':!cache/packs'";

} // namespace

History::History(std::filesystem::path root) : root(std::move(root)) {
  known = ask("rev-parse --is-shallow-repository") == "false\n";
}

std::optional<int64_t> History::commitsSince(const std::string &commit) {
  const auto known = counted.find(commit);
  if (known != counted.end())
    return known->second;
  std::optional<int64_t> count;
  if (ask("merge-base --is-ancestor " + commit + " HEAD"))
    if (const auto text = ask("rev-list --count " + commit + "..HEAD -- " + kMeasuredFolders))
      count = std::strtoll(text->c_str(), nullptr, 10);
  counted[commit] = count;
  return count;
}

// What git prints; nullopt where it fails.
std::optional<std::string> History::ask(const std::string &arguments) const {
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

} // namespace nsa::tables
