// A kernel database or a pack, opened for reading by the commands that process whole files: export, merge, verify and
// others. Every fault that a CacheFile finds in its file is an error, also a fault that an engine would tolerate.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/database/schema.h"
#include "cache/database/sqlite.h"
#include "cache/pack/pack_file.h"
#include "cache/rows/collection.h"
#include "cache/rows/rows.h"
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
  // Whether to accept a database without any stored row. Such a database is usually one that another process is still
  // making, or an incomplete copy.
  enum class Empty { kRefused, kAccepted };
  // Opens the file. If the last writer of the file died during a write, that write is undone first; nothing else in the
  // file changes.
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
  // Returns nullopt if the file has no such kernel, and an error if the kernel's row is damaged.
  Result<std::optional<StoredKernel>> kernel(const std::string &content);
  // Returns which kernels a collection (collection.h) with `rules` would remove from a database. To find out what would
  // be removed, the collection runs on a copy of the database in memory.
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
