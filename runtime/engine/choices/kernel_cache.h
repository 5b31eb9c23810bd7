// The stored kernels of an engine: one database, into which the engine writes, and packs, which the engine only reads.
// If a database or a pack cannot be read, the engine logs one warning and treats the file as empty. An error of the
// database or a pack never makes a launch fail.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "cache/kernel_store.h"
#include "cache/lease.h"
#include "cache/pack.h"
#include "runtime/engine/choices/choice_source.h"
#include "runtime/process/log.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nsa {

struct CacheSettings {
  std::string path{};               // the database
  std::vector<std::string> packs{}; // in the order in which they are asked
  SignatureRules signatures{};      // for packs
  int64_t maxBytes = 0;             // limit of the database; 0: no limit
};

struct CacheCounters : StoreCounters {
  uint64_t packHits = 0;     // kernels of packs that served plans
  uint64_t refusedPacks = 0; // packs that are missing, not trusted or damaged
};

class KernelCache final : public ChoiceSource {
public:
  // Opens no file. If the database is missing, the first call that writes into it or takes a lease creates it. Lookups
  // create no file.
  KernelCache(CacheSettings settings, Logger logger);

  // Finds a choice in this order: a tuned choice of the database, a tuned choice of a pack, an untuned choice of the
  // database, an untuned choice of a pack. The kernel that a choice names may be stored in the database or in any pack.
  std::optional<Hit> find(const std::string &problem, const std::string &device) override;
  // Opens the database, unless it is missing. Before, each lookup opens it read-only.
  void open() override;
  // The next put or the end of the engine writes into the database that the kernel was used. A kernel of a pack is
  // counted.
  void noteUse(const Hit &hit) override;
  // Stores a kernel, and where `choice` is not null the choice that names the kernel. The error of `put` says why
  // nothing was stored. A caller may ignore the error of `put`, because `put` has logged a warning.
  Status put(const StoredKernel &kernel, const StoredChoice *choice);

  // Each call of choicesOf reads the rows again and creates no file. choicesOf returns an empty list if neither the
  // database nor a pack can be read.
  std::vector<ChoiceSummary> choicesOf(const std::string &op) override;

  // If the database and a pack both have a threshold with this name, findRoute returns the threshold of the database.
  std::optional<StoredRoute> findRoute(const std::string &family, const std::string &device,
                                       const std::string &name) override;
  // Stores a threshold. The error of putRoute says why the threshold was not stored.
  Status putRoute(const StoredRoute &route);

  // Returns an error if a path of a database is set but the database cannot be written. checkKept makes the database if
  // it is missing.
  Status checkKept();

  // Takes the lease for `work` on the problem ("tune", ...), so that no other process does the same work meanwhile.
  // `lease` returns null if the database cannot be used.
  std::unique_ptr<KeyLease> lease(const std::string &problem, const std::string &device, const std::string &work);

  const std::string &path() const { return settings.path; }
  const std::vector<std::string> &packPaths() const { return settings.packs; }
  bool takesChoices() const override { return true; }
  std::string layerPath(int layer) override;
  std::string places() override;
  std::string trouble() const override; // of the database; makes no file
  CacheCounters counters() const;

private:
  using Packs = std::vector<std::unique_ptr<Pack>>;

  KernelStore *store(); // nullptr: the engine works without a store
  bool isOpen() const;
  bool isMissing() const; // whether there is no database yet, so that each lookup in it is a miss
  std::unique_ptr<KernelStore> openToRead(std::string &trouble) const; // nullptr: the engine works without a store
  // Returns the open database. If the database is not open, `look` opens it read-only and stores the opened database in
  // `own`. `look` returns nullptr if there is no database.
  KernelStore *look(std::unique_ptr<KernelStore> &own);
  // Logs a warning if a write into the database failed or met damaged rows. `status` is the result of the write.
  // `written` returns an error if the write failed, or if it reached only a store in memory that replaces the database
  // file.
  Status written(const KernelStore &into, Status status);
  // Adds the kernel that a hit's choice names, from the database or from a pack. Returns false if no layer has it.
  bool addKernel(KernelStore *from, Hit &hit);
  // The first call of `packs` opens the packs. `packs` does not return packs that were refused.
  const Packs &packs();
  void openPacks();
  void warn(const std::string &text);
  // Logs a warning if the database or the pack could not be read or written since it was opened, and a warning if it
  // has damaged rows, which are skipped.
  void warnOfTrouble(const KernelStore &store);
  void warnOfTrouble(const Pack &pack);
  // Returns the value of `result`. If `result` is an error, orWarn logs a warning and returns a default value.
  template <typename T> T orWarn(Result<T> result);

  const CacheSettings settings;
  Logger logger;
  mutable std::mutex mutex;
  bool tried = false; // whether the store was opened, with or without success
  std::unique_ptr<KernelStore> opened;
  std::string notOpened; // why the store could not be opened
  std::set<std::string> warned;
  std::once_flag packsTried;
  Packs openedPacks; // the packs that serve, in order; constant once `packsReady`
  std::atomic<bool> packsReady{false};
  std::atomic<uint64_t> packHits{0}, refusedPacks{0};
};

} // namespace nsa
