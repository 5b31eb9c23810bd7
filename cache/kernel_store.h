// The kernel store: one sqlite database that keeps compiled kernels by content, tuned choices by problem and
// device and measured thresholds (routes), each with its evidence. docs/cache_format.md has the schema.
// Damage is never fatal: a row whose digest does not match is skipped and counted; a damaged kernel
// database is renamed aside; a read-only or full disk, or a file of something else, means "work without".
// Thread-safety: a store may be used by many threads at once (one connection behind a mutex; the
// launch path never touches it). Distinct processes may share a file. A store survives a fork in parent and child: it
// waits for the calls in progress, and each side opens the file anew with its next call (cache/fork_fence.h).
#pragma once

#include "cache/collection.h"
#include "cache/file_system.h"
#include "cache/lease_table.h"
#include "cache/merge.h"
#include "cache/rows.h"
#include "runtime/base/status.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

class CacheFile;

struct StoreCounters {
  uint64_t hits = 0, misses = 0; // lookups of kernels and choices
  uint64_t damagedRows = 0;      // digest mismatches, and lookups that sqlite called corrupt
  uint64_t failedWrites = 0;
  uint64_t replacedFiles = 0;    // damaged files renamed aside while in use
  uint64_t collectedKernels = 0; // removed to make room for others
};

class KernelStore {
public:
  struct Options {
    std::string path;      // file; ":memory:" keeps nothing
    bool readOnly = false; // never write, never create; a missing or empty file is an empty store in memory
    bool takeBack = false; // a read-only store takes back what a writer had begun when it died, and changes no more
    // How long a file is waited for that another process keeps locked. Who makes a new one syncs it several times, and
    // a disk under load may take a second for each.
    std::chrono::milliseconds lockedWait{20000};
    std::optional<Journal> journal{}; // unset: the one that suits the file system
    int64_t maxBytes = 0; // a put that makes the file larger makes room, see cache/collection.h; 0: no limit
  };
  // Creates the file and missing directories (mode 0700) unless read-only. `warning` receives one line when
  // the store works in a reduced way: a damaged file was renamed aside, the medium is read-only, or the file
  // cannot be used at all (world-writable, not ours, of a newer schema) and the store is in memory.
  static Result<std::unique_ptr<KernelStore>> open(const Options &options, std::string &warning);
  ~KernelStore();

  // nullopt: not stored, or stored but damaged or out of reach (counted). Never fails on a bad file.
  Result<std::optional<StoredChoice>> findChoice(const std::string &problem, const std::string &device);
  Result<std::optional<StoredKernel>> findKernel(const std::string &content);

  // One transaction: the kernel, and the choice that names it when given. Replaces an older choice of the
  // same problem and device, but an intact tuned one never by an untuned one. An error leaves the file as it
  // was and is counted; the caller goes on with the kernel in its hands.
  Status put(const StoredKernel &kernel, const StoredChoice *choice);

  // Thresholds between algorithms. A route of the same family, device and name is replaced, with its evidence.
  Status putRoute(const StoredRoute &route);
  // nullopt: not stored, or out of reach.
  Result<std::optional<StoredRoute>> findRoute(const std::string &family, const std::string &device,
                                               const std::string &name);

  // Takes another file's choices, kernels and routes, in one transaction (cache/merge.h).
  Result<MergeReport> merge(CacheFile &from, Prefer prefer);
  // Makes room, in one transaction (cache/collection.h), and then compacts the file, unless others are using it.
  // CacheFile::wouldCollect tells beforehand.
  Result<CollectionReport> collect(const CollectionRules &rules);

  // For KeyLease (cache/lease.h). An error: this store has no leases, because nothing can be written or the file
  // failed.
  Result<std::optional<LeaseRow>> findLease(const LeaseKey &key);
  // Puts the row in the place of `expected`; false when another one stands there.
  Result<bool> swapLease(const LeaseKey &key, const std::optional<LeaseRow> &expected, const LeaseRow &row);
  // False: the lease is another owner's by now.
  Result<bool> renewLease(const LeaseKey &key, const std::string &owner, int64_t expiresMs);
  void dropLease(const LeaseKey &key, const std::string &owner);

  Result<std::vector<KernelSummary>> listKernels();
  Result<std::vector<StoredChoice>> listChoices();
  Result<std::vector<StoredRoute>> listRoutes();
  // Of one operator, without evidence; ascending by problem, then device.
  Result<std::vector<ChoiceSummary>> summarizeChoices(const std::string &op);
  StoreCounters counters() const;
  // The file, or ":memory:" when nothing is kept.
  std::string path() const;
  bool isReadOnly() const;
  // Why the store works in a reduced way, in the words of `open`'s warning; "" when it does not. A file may be lost
  // later too: damaged in use, or out of reach when it is opened anew after a fork.
  std::string trouble() const;
  // What is done in another way without being reduced, as by a file system of a network; "" when nothing is.
  std::string note() const;

private:
  explicit KernelStore(const Options &options);
  struct State;
  template <typename Row, typename List> Result<std::vector<Row>> listRows(List list);
  std::unique_ptr<State> state;
};

} // namespace nsa
