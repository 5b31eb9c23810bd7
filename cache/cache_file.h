// A kernel database or a pack that is opened only to read, for the commands that handle whole files: export, merge,
// verify and others. Every fault of a CacheFile is an error, also a fault that an engine would work around.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/collection.h"
#include "cache/pack_file.h"
#include "cache/rows.h"
#include "cache/schema.h"
#include "cache/sqlite.h"
#include "runtime/base/status.h"

#include <optional>
#include <string>
#include <vector>

namespace nsa {

class CacheFile {
public:
  // How much of a pack is checked. kRows: rows, evidence and signatures must match the digests; the binaries are not
  // checked yet.
  enum class Check { kRows, kNothing };
  // Whether to accept a database in which nothing was ever stored. A database file in which nothing was stored is still
  // being made, or is a torn copy.
  enum class Empty { kRefused, kAccepted };
  // Opens the file. A write that was unfinished when its writer died is taken back first; nothing else in the file
  // changes.
  static Result<CacheFile> open(const std::string &path, Check check = Check::kRows, Empty empty = Empty::kRefused,
                                const SignatureRules &rules = {});

  bool isPack() const { return facts.has_value(); }
  bool isEmpty() const { return holdsNothing; }
  const std::string &path() const { return name; }
  const PackFacts &pack() const { return *facts; }
  // Returns one line when trusted keys are given and none of them has signed the pack; otherwise "".
  const std::string &warning() const { return unsignedWarning; }
  sqlite::Connection &connection() { return link; }

  Result<std::vector<KernelSummary>> kernels();
  Result<std::vector<StoredChoice>> choices();
  Result<std::vector<StoredRoute>> routes();
  // Returns nullopt if the file has no such kernel. A damaged row is an error.
  Result<std::optional<StoredKernel>> kernel(const std::string &content);
  // What a collection would remove from a database. The collection is tried on a copy in memory.
  Result<CollectionReport> wouldCollect(const CollectionRules &rules);
  // The error for a call of sqlite that returned `code`.
  Status failed(int code) const;

private:
  template <typename Row> Result<std::vector<Row>> list(int (*read)(sqlite::Connection &, std::vector<Row> &));

  std::string name, unsignedWarning;
  bool holdsNothing = false;
  sqlite::Connection link;
  std::optional<PackFacts> facts;
};

} // namespace nsa
