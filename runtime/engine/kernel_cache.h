// The kernels that an engine can have without making them: one database, into which it writes, and packs, which it only
// reads. Trouble with a file gives one warning, and the file then counts as empty. So trouble with a cache never stops
// a launch.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "cache/kernel_store.h"
#include "cache/lease.h"
#include "cache/pack.h"
#include "runtime/base/log.h"

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
  uint64_t packHits = 0;     // kernels served from packs
  uint64_t refusedPacks = 0; // packs that are missing, not trusted or damaged
};

class KernelCache {
public:
  struct Hit {
    StoredChoice choice;
    StoredKernel kernel;
    int layer = 0; // that of the choice, as in ChoiceSummary
  };

  // Opens nothing. The first put or lease makes the database when it is missing; lookups make no file.
  KernelCache(CacheSettings settings, Logger logger);

  // Finds a choice in this order: a tuned choice of the database, a tuned choice of a pack, an untuned choice of the
  // database, an untuned choice of a pack. The choice's kernel may come from any layer.
  std::optional<Hit> find(const std::string &problem, const std::string &device);
  // As `find`, which also notes uses in the database and renames a damaged one. This changes no file.
  std::optional<Hit> peek(const std::string &problem, const std::string &device);
  // Stores a kernel, and the choice that names it if there is one. The error says why nothing was stored. A launch may
  // ignore it, because a warning was logged.
  Status put(const StoredKernel &kernel, const StoredChoice *choice);

  // Lists the choices for an operator's problems on all devices: those of the database (layer 0), then those of each
  // pack. Each layer is in ascending order of problem and device. The list has no evidence and no binaries. It is read
  // anew each time, makes no file, and is empty when no file works.
  std::vector<ChoiceSummary> choicesOf(const std::string &op);
  // The kernel with this content, from any layer. Makes no file.
  std::optional<StoredKernel> kernelOf(const std::string &content);

  // The measured threshold of that name; the database's comes before the packs'. nullopt: never measured. A threshold
  // of "never" is an answer.
  std::optional<StoredRoute> findRoute(const std::string &family, const std::string &device, const std::string &name);
  // Stores a threshold. The error says why it was not stored, as for `put`.
  Status putRoute(const StoredRoute &route);

  // Fails when `put` would store nothing although a file was asked for. Makes the database when it is missing.
  Status checkKept();

  // A lease on making `work` for the problem. Null while the store does not work.
  std::unique_ptr<KeyLease> lease(const std::string &problem, const std::string &device, const std::string &work);

  const std::string &path() const { return settings.path; }
  // The path of a layer's file.
  std::string layerPath(int layer);
  // "" while the database works; otherwise the reason. Makes no file.
  std::string trouble() const;
  CacheCounters counters() const;

private:
  using Packs = std::vector<std::unique_ptr<Pack>>;

  KernelStore *store(); // nullptr: the engine works without a store
  bool isOpen() const;
  bool isMissing() const; // whether there is no database yet, so that each lookup in it is a miss
  std::unique_ptr<KernelStore> openToRead(std::string &trouble) const; // nullptr: the engine works without a store
  // The open store, or else one that is opened to read and kept in `own`. nullptr: the engine works without a store.
  KernelStore *look(std::unique_ptr<KernelStore> &own);
  // Warns after a write if there is reason to, and returns whether the file has what was written.
  Status written(const KernelStore &into, Status status);
  std::optional<Hit> findIn(KernelStore *from, const std::string &problem, const std::string &device);
  std::optional<StoredKernel> kernelFrom(KernelStore *from, const std::string &content);
  // The first call opens the packs. Those that are refused are left out.
  const Packs &packs();
  void openPacks();
  void warn(const std::string &text);
  // Warns of what has happened to a file since it was opened, and of damaged rows that it skips.
  void warnOfTrouble(const KernelStore &store);
  void warnOfTrouble(const Pack &pack);
  // Returns the value, or after a warning a default value.
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
