// The kernels an engine can have without making them: one database, into which it writes, over packs, which it only
// reads. Trouble with a file is warned about once and otherwise looks like an empty one, so that no cache problem is
// ever a launch problem.
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
  SignatureRules signatures{};      // of packs
  int64_t maxBytes = 0;             // of the database; 0: no limit
};

struct CacheCounters : StoreCounters {
  uint64_t packHits = 0;     // kernels served from packs
  uint64_t refusedPacks = 0; // not there, not trusted or damaged
};

class KernelCache {
public:
  struct Hit {
    StoredChoice choice;
    StoredKernel kernel;
    int layer = 0; // of the choice, as in ChoiceSummary
  };

  // Opens nothing yet: the first find or put makes the database when it is missing.
  KernelCache(CacheSettings settings, Logger logger);

  // The database's tuned choice, else a pack's, else the database's choice that was never measured, else a pack's. Its
  // kernel may come from any layer.
  std::optional<Hit> find(const std::string &problem, const std::string &device);
  // The same for who only asks: makes and renames nothing.
  std::optional<Hit> peek(const std::string &problem, const std::string &device);
  // Why nothing was kept, which a launch may ignore: it was warned about.
  Status put(const StoredKernel &kernel, const StoredChoice *choice);

  // What is stored for an operator's problems, on all devices, of all layers: the database's choices (layer 0), then
  // those of each pack, each ascending by problem and device. Without evidence and binaries; read anew each time, and
  // like `peek` it makes nothing. Empty when no file works.
  std::vector<ChoiceSummary> choicesOf(const std::string &op);
  // The kernel of that content, of any layer; makes nothing.
  std::optional<StoredKernel> kernelOf(const std::string &content);

  // The measured threshold of that name, the database's before the packs'. nullopt: never measured; one that says
  // "never" is an answer.
  std::optional<StoredRoute> findRoute(const std::string &family, const std::string &device, const std::string &name);
  // Why it was not kept, as for `put`.
  Status putRoute(const StoredRoute &route);

  // Why nothing that is put would be kept, where a file was to keep it. Makes the database when it is missing.
  Status checkKept();

  // The right to make something of that name for the problem; null while the store does not work.
  std::unique_ptr<KeyLease> lease(const std::string &problem, const std::string &device, const std::string &work);

  const std::string &path() const { return settings.path; }
  // The file of a layer.
  std::string layerPath(int layer);
  // "" while the database works; else why it does not. Makes nothing either.
  std::string trouble() const;
  CacheCounters counters() const;

private:
  using Packs = std::vector<std::unique_ptr<Pack>>;

  KernelStore *store(); // nullptr: working without
  bool isOpen() const;
  std::unique_ptr<KernelStore> openToRead(std::string &trouble) const; // nullptr: working without
  // The file as it is: the open store, or one to read that is dropped afterwards. nullptr: working without.
  KernelStore *look(std::unique_ptr<KernelStore> &own);
  // After a write: what to warn of, and whether the file has it.
  Status written(const KernelStore &into, Status status);
  std::optional<Hit> findIn(KernelStore *from, const std::string &problem, const std::string &device);
  std::optional<StoredKernel> kernelFrom(KernelStore *from, const std::string &content);
  // Opened by the first call; those that are refused are left out.
  const Packs &packs();
  void openPacks();
  void warn(const std::string &text);
  // What has happened to the files since they were opened, and what they skip without a word.
  void warnOfTrouble(const KernelStore &store);
  void warnOfTrouble(const Pack &pack);
  // The value, or a default one after a warning.
  template <typename T> T orWarn(Result<T> result);

  const CacheSettings settings;
  Logger logger;
  mutable std::mutex mutex;
  bool tried = false; // to open the store
  std::unique_ptr<KernelStore> opened;
  std::string notOpened; // why
  std::set<std::string> warned;
  std::once_flag packsTried;
  Packs openedPacks; // those of them that serve, in order; constant once they are ready
  std::atomic<bool> packsReady{false};
  std::atomic<uint64_t> packHits{0}, refusedPacks{0};
};

} // namespace nsa
