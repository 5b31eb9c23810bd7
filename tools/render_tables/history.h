// How far the measured code has moved on since a commit, asked from git.
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace nsa::tables {

class History {
public:
  // A tree without git, or with a cut history (a shallow clone), knows no commits.
  explicit History(std::filesystem::path root);

  bool isKnown() const { return known; }
  // The commits after this one that touch what is measured (kMeasuredFolders). nullopt: HEAD does not descend from it.
  std::optional<int64_t> commitsSince(const std::string &commit);

private:
  std::optional<std::string> ask(const std::string &arguments) const;

  std::filesystem::path root;
  bool known = false;
  std::map<std::string, std::optional<int64_t>> counted;
};

} // namespace nsa::tables
