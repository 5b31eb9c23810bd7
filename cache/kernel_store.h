// The kernel store: one sqlite database with compiled kernels by content, tuned choices by problem and device, and
// measured thresholds (routes), each with its evidence. docs/cache_format.md has the schema.
// Damage is never fatal. A row with a wrong digest is skipped and counted. A damaged kernel database is renamed aside.
// If the disk is read-only or full, or if the file is of another kind, the store keeps its rows in memory.
// Thread-safety: many threads may use a store at once (one connection behind a mutex; the launch path never touches
// it). Several processes may use the same database file at once. A store survives a fork in parent and child: the fork
// waits for the calls in progress, and each side opens the file anew with its next call (cache/database/fork_fence.h).
#pragma once

#include "cache/database/file_system.h"
#include "cache/rows/collection.h"
#include "cache/rows/lease_table.h"
#include "cache/rows/merge.h"
#include "cache/rows/rows.h"
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
  uint64_t damagedRows = 0;      // rows with a wrong digest, and lookups that sqlite called corrupt
  uint64_t failedWrites = 0;
  uint64_t replacedFiles = 0;    // damaged files that were renamed aside while in use
  uint64_t collectedKernels = 0; // kernels removed to make room for others
};

class KernelStore {
public:
  struct Options {
    std::string path; // a file; ":memory:" stores nothing
    // A read-only store never creates a file, and writes to a file only if `takeBack` is true. For a read-only store a
    // missing or empty file is an empty store in memory.
    bool readOnly = false;
    // If `takeBack` is true, a read-only store undoes a write that was unfinished when its writer died. The store
    // changes nothing else in the file.
    bool takeBack = false;
    // The longest wait for a file that another process keeps locked. A process that creates a new database file syncs
    // it several times, and each sync may take a second on a disk under load.
    std::chrono::milliseconds lockedWait{20000};
    std::optional<Journal> journal{}; // unset: the journal that suits the file system
    // If a put makes the file larger than `maxBytes`, other kernels are removed from it (cache/rows/collection.h). 0:
    // no limit.
    int64_t maxBytes = 0;
  };
  // Opens the store. Creates the store's file and missing directories (mode 0700) unless the store is read-only.
  // `warning` receives one line if a damaged file was renamed aside, if the medium is read-only, or if the store is in
  // memory because the file cannot be used. For example, a file cannot be used if other users own it or may write it,
  // or if its schema is newer.
  static Result<std::unique_ptr<KernelStore>> open(const Options &options, std::string &warning);
  ~KernelStore();

  // Lookups return nullopt if the row is not stored, is damaged or cannot be read because the file failed; damaged rows
  // and failed reads are counted. A damaged or unreadable file never makes a lookup fail.
  Result<std::optional<StoredChoice>> findChoice(const std::string &problem, const std::string &device);
  // A kernel that is found counts as used today, unless `isUse` is false; noteUse then counts the use. The order in
  // which a full database removes kernels depends on their uses.
  Result<std::optional<StoredKernel>> findKernel(const std::string &content, bool isUse = true);
  void noteUse(const std::string &content);

  // Stores the kernel, and the choice that names it if there is one, in one transaction. `put` replaces an older choice
  // of the same problem and device, except that an untuned choice never replaces an undamaged tuned choice. A failed
  // `put` leaves the file as it was and is counted. After a failed `put` the caller continues with the kernel that it
  // has in memory.
  Status put(const StoredKernel &kernel, const StoredChoice *choice);

  // Stores a route, which is a measured size at which another algorithm becomes the faster one. `putRoute` replaces a
  // stored route of the same family, device and name, together with the evidence of the stored route.
  Status putRoute(const StoredRoute &route);
  // Returns nullopt if the route is not stored or the file cannot be read.
  Result<std::optional<StoredRoute>> findRoute(const std::string &family, const std::string &device,
                                               const std::string &name);

  // Copies another file's choices, kernels and routes into the store's file, in one transaction (cache/rows/merge.h).
  Result<MergeReport> merge(CacheFile &from, Prefer prefer);
  // Removes kernels in one transaction (cache/rows/collection.h), and then compacts the file unless another process
  // uses it. CacheFile::wouldCollect tells the result beforehand.
  Result<CollectionReport> collect(const CollectionRules &rules);

  // The functions from findLease to dropLease serve KeyLease (cache/lease.h). If findLease, swapLease or renewLease
  // returns an error, the store cannot give leases, because its file cannot be written or has failed.
  Result<std::optional<LeaseRow>> findLease(const LeaseKey &key);
  // Replaces the lease `expected` by `row`. Returns false when the lease in the file is not `expected`.
  Result<bool> swapLease(const LeaseKey &key, const std::optional<LeaseRow> &expected, const LeaseRow &row);
  // Returns false when another owner has taken the lease in the meantime.
  Result<bool> renewLease(const LeaseKey &key, const std::string &owner, int64_t expiresMs);
  void dropLease(const LeaseKey &key, const std::string &owner);

  Result<std::vector<KernelSummary>> listKernels();
  Result<std::vector<StoredChoice>> listChoices();
  Result<std::vector<StoredRoute>> listRoutes();
  // The choices of one operator, without evidence, in ascending order of problem and device.
  Result<std::vector<ChoiceSummary>> summarizeChoices(const std::string &op);
  StoreCounters counters() const;
  // The path of the database file, or ":memory:" if the store keeps nothing on disk.
  std::string path() const;
  bool isReadOnly() const;
  // Returns the warning of `open` about the store's file, or "" if there was no warning. The text may change after
  // `open`, because the file may be damaged while it is used, or may not be accessible when it is opened again after a
  // fork.
  std::string trouble() const;
  // Returns a line of text if the store uses a rollback journal because its file is on a network file system, and ""
  // otherwise. With a rollback journal the store can do everything that it can do with a write-ahead log.
  std::string note() const;

private:
  explicit KernelStore(const Options &options);
  struct State;
  template <typename Row, typename List> Result<std::vector<Row>> listRows(List list);
  std::unique_ptr<State> state;
};

} // namespace nsa
