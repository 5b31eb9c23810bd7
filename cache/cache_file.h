// A kernel database or a pack, opened only to read, for who looks at whole files: export, merge, verify and the like.
// Nothing is forgiven here: what an engine would work around is an error.
// Thread-safety: none, as the connection.
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
  // Of a pack. kRows: rows, evidence and signatures are those of its digests; of its binaries nothing is known yet.
  enum class Check { kRows, kNothing };
  // A database in which nothing was ever stored: one in the making, or a torn copy.
  enum class Empty { kRefused, kAccepted };
  // What a writer had begun when it died is taken back; nothing else changes in the file.
  static Result<CacheFile> open(const std::string &path, Check check = Check::kRows, Empty empty = Empty::kRefused,
                                const SignatureRules &rules = {});

  bool isPack() const { return facts.has_value(); }
  bool isEmpty() const { return holdsNothing; }
  const std::string &path() const { return name; }
  const PackFacts &pack() const { return *facts; }
  // One line when trusted keys are given and none of them has signed the pack; else "".
  const std::string &warning() const { return unsignedWarning; }
  sqlite::Connection &connection() { return link; }

  Result<std::vector<KernelSummary>> kernels();
  Result<std::vector<StoredChoice>> choices();
  Result<std::vector<StoredRoute>> routes();
  // nullopt: not there. A damaged row is an error.
  Result<std::optional<StoredKernel>> kernel(const std::string &content);
  // What a collection would remove from a database: it is done to a copy in memory.
  Result<CollectionReport> wouldCollect(const CollectionRules &rules);
  // The error of a call that gave `code`.
  Status failed(int code) const;

private:
  template <typename Row> Result<std::vector<Row>> list(int (*read)(sqlite::Connection &, std::vector<Row> &));

  std::string name, unsignedWarning;
  bool holdsNothing = false;
  sqlite::Connection link;
  std::optional<PackFacts> facts;
};

} // namespace nsa
