// Asks git how many commits since a given one have changed the measured code.
// Thread-safety: only one thread at a time may use a History.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace nsa::tables {

class History {
public:
  // In a source tree without git, or with a shortened history (a shallow clone), `isKnown` is false and no commits can
  // be counted.
  explicit History(std::filesystem::path root);

  bool isKnown() const { return known; }
  // Returns how many commits after the given commit change the measured code (kMeasuredFolders). nullopt: HEAD does not
  // descend from the commit.
  std::optional<int64_t> commitsSince(const std::string &commit);

private:
  std::optional<std::string> ask(const std::string &arguments) const;

  std::filesystem::path root;
  bool known = false;
  std::map<std::string, std::optional<int64_t>> counted;
};

} // namespace nsa::tables
