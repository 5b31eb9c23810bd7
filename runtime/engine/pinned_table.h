// The choices of a pack or database to which an engine is bound. An engine with a pinned table takes choices from the
// table alone and tunes nothing, so all processes with one pinned file run the same kernels. A pinned file is opened
// once and never written. Rows of a pinned file that another process changes afterwards neither choose nor run.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "cache/kernel_store.h"
#include "cache/pack.h"
#include "cache/pack_index.h"
#include "runtime/engine/kernel_cache.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

class PinnedTable {
public:
  // `open` fails on a file that is missing, damaged or refused, because an engine without the pinned table would choose
  // other kernels. Where `rules` require a signature, only a pack can be pinned.
  static Result<std::unique_ptr<PinnedTable>> open(const std::string &path, const SignatureRules &rules);

  // Returns nullopt when there is no choice, or when the kernel that the choice names is damaged.
  std::optional<KernelCache::Hit> find(const std::string &problem, const std::string &device);
  std::optional<StoredRoute> findRoute(const std::string &family, const std::string &device, const std::string &name);
  std::vector<ChoiceSummary> choicesOf(const std::string &op) const;

  const std::string &path() const { return file; }
  size_t size() const { return choices.size(); }
  // Returns a digest over all that chooses and all that may run: problems, devices, whether choices were measured, the
  // digest of each kernel (manifest and binary), and the thresholds of routes. Two pinned files from which the same
  // kernels are launched have the same digest.
  std::string digest() const;
  // Returns one line when the table serves although no trusted key has signed it; otherwise "".
  std::string warning() const { return pack ? pack->warning() : ""; }

private:
  explicit PinnedTable(std::string file) : file(std::move(file)) {}
  Status openDatabase();
  std::optional<StoredKernel> findKernel(const std::string &content);

  std::string file;
  std::unique_ptr<Pack> pack; // either this or `store` is set
  std::unique_ptr<KernelStore> store;
  PackIndex rows;                     // the rows of a database when it was opened
  std::vector<ChoiceSummary> choices; // ordered by problem and device
  std::vector<StoredRoute> routes;    // ordered by family, device and name
};

} // namespace nsa
