// Reads the files from which pages are rendered: the records of benches, and the descriptions of packs.
// Thread-safety: only one thread at a time may use a Records.
#pragma once

#include "runtime/base/status.h"
#include "tools/render_tables/tables.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nsa::tables {

struct Source {
  std::string commit, date, what;
  std::string repository; // OWNER/NAME, for a commit of another project; otherwise ""
};

class Records {
public:
  // `root` is the repository's folder.
  explicit Records(std::filesystem::path root);

  // Reads the file of a record or a pack. The name "h200/launch" stands for the file bench/results/h200/launch.json,
  // and the name "packs/NAME" stands for cache/packs/NAME.json. A record that was measured with uncommitted changes, or
  // at a commit that HEAD does not descend from, is an error, because the source code that it measured cannot be read.
  // A record may have a list of commits, `sources`. The description of a pack has the list `sources`, and so has the
  // record of other projects' programs. The commits of other projects are not looked up in this repository's history.
  Result<const Json *> read(const std::string &name);
  // Returns the names of all records of one bench, for example "cpu/launch" and "h200/launch" for the bench "launch".
  // If no name is given, returns the names of all records and packs.
  std::vector<std::string> find(const std::string &bench = "") const;
  // Returns the commits that a record lists, and for each commit a text that says what was measured or made with it.
  // For a record without the list `sources`, sourcesOf returns only the commit of the program that measured the record,
  // with an empty text.
  static std::vector<Source> sourcesOf(const Json &record);
  // Returns how many commits have changed the measured code since the commit of `source`, or since the oldest commit
  // that `record` lists. Returns nullopt if the number cannot be known, for example for a commit of another project.
  std::optional<int64_t> age(const Source &source);
  std::optional<int64_t> age(const Json &record);

private:
  Status checkSources(const std::string &name, const Json &record);
  Status checkSource(const std::string &name, const Source &source);
  // Returns how many commits after the given commit change the measured code (kMeasuredFolders). nullopt: HEAD does not
  // descend from the commit.
  std::optional<int64_t> commitsSince(const std::string &commit);
  // Returns what git prints, or nullopt if git fails.
  std::optional<std::string> askGit(const std::string &arguments) const;

  std::filesystem::path root;
  bool hasHistory; // false in a tree without git and in a shallow clone: there no commits can be counted
  std::map<std::string, std::optional<int64_t>> counted; // commitsSince
  std::map<std::string, Json> known;
};

} // namespace nsa::tables
