// Reads the files from which pages are rendered: the records of benches, and the descriptions of packs.
// Thread-safety: one thread uses a Records object.
#pragma once

#include "runtime/base/status.h"
#include "tools/render_tables/history.h"
#include "tools/render_tables/tables.h"

#include <filesystem>
#include <map>
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
  explicit Records(const std::filesystem::path &root) : root(root), history(root) {}

  // "h200/launch" is bench/results/h200/launch.json, "packs/NAME" is cache/packs/NAME.json. A record that was measured
  // with uncommitted changes, or at a commit that HEAD does not descend from, is an error, because the source code that
  // it measured cannot be read. A record may list several commits (`sources`): the description of a pack always lists
  // several, and so does a record of other projects' programs, whose commits are not looked up in our history.
  Result<const Json *> read(const std::string &name);
  // Returns the names of all records of one bench, for example "cpu/launch" and "h200/launch" for the bench "launch".
  // If no name is given, returns the names of all records and packs.
  std::vector<std::string> find(const std::string &bench = "") const;
  // The commits that a record lists, and for each commit what was measured or made with it. A bench's record has a
  // single source, without a description.
  static std::vector<Source> sourcesOf(const Json &record);
  // How many commits have changed the measured code since a source, or since the oldest source of a record. nullopt
  // where that cannot be known, as for another project's commit.
  std::optional<int64_t> age(const Source &source);
  std::optional<int64_t> age(const Json &record);

private:
  Status checkSources(const std::string &name, const Json &record);
  Status checkSource(const std::string &name, const Source &source);

  std::filesystem::path root;
  History history;
  std::map<std::string, Json> known;
};

} // namespace nsa::tables
