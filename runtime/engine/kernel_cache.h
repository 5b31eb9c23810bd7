// The kernel store as the engine sees it: trouble with the file is warned about once and otherwise looks like an empty
// store, so that no cache problem is ever a launch problem.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "cache/kernel_store.h"
#include "cache/lease.h"
#include "runtime/base/log.h"

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nsa {

class KernelCache {
public:
  struct Hit {
    StoredChoice choice;
    StoredKernel kernel;
  };

  // Opens nothing yet: the first find or put makes the file when it is missing.
  KernelCache(std::string path, Logger logger);

  std::optional<Hit> find(const std::string &problem, const std::string &device);
  // The same for who only asks: makes and renames nothing.
  std::optional<Hit> peek(const std::string &problem, const std::string &device);
  // Why nothing was kept, which a launch may ignore: it was warned about.
  Status put(const StoredKernel &kernel, const StoredChoice *choice);

  // What is stored for an operator's problems, on all devices, of all layers: the database's choices (layer 0), then
  // those of each pack, each ascending by problem and device. Without evidence and binaries; read anew each time, and
  // like `peek` it makes nothing. Empty when the store does not work.
  std::vector<ChoiceSummary> choicesOf(const std::string &op);

  // The measured threshold of that name. nullopt: never measured; one that says "never" is an answer.
  std::optional<StoredRoute> findRoute(const std::string &family, const std::string &device, const std::string &name);
  // Why it was not kept, as for `put`.
  Status putRoute(const StoredRoute &route);

  // The right to make something of that name for the problem; null while the store does not work.
  std::unique_ptr<KeyLease> lease(const std::string &problem, const std::string &device, const std::string &work);

  const std::string &path() const { return file; }
  // "" while the store works; else why it does not. Makes nothing either.
  std::string trouble() const;
  StoreCounters counters() const;

private:
  KernelStore *store(); // nullptr: working without
  bool isOpen() const;
  std::unique_ptr<KernelStore> openToRead(std::string &trouble) const; // nullptr: working without
  // The file as it is: the open store, or one to read that is dropped afterwards. nullptr: working without.
  KernelStore *look(std::unique_ptr<KernelStore> &own);
  // After a write: what to warn of, and whether the file has it.
  Status written(const KernelStore &into, Status status);
  std::optional<Hit> findIn(KernelStore &from, const std::string &problem, const std::string &device);
  void warn(const std::string &text);
  // What has happened to the store since it was opened, and what it skips without a word.
  void warnOfTrouble(const KernelStore &store);
  // The value, or a default one after a warning.
  template <typename T> T orWarn(Result<T> result);

  std::string file;
  Logger logger;
  mutable std::mutex mutex;
  bool tried = false; // to open the store
  std::unique_ptr<KernelStore> opened;
  std::string notOpened; // why
  std::set<std::string> warned;
};

} // namespace nsa
