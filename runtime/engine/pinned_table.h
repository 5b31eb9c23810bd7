// The choices of a pack or database that an engine is bound to: nothing else chooses, and nothing is tuned, so that all
// processes with one file run the same. The file is opened once and never written; what another process changes in it
// afterwards neither chooses nor runs.
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
  // Fails on a file that is missing, damaged or refused: working without would be to choose otherwise. A required
  // signature is one that only a pack can have.
  static Result<std::unique_ptr<PinnedTable>> open(const std::string &path, const SignatureRules &rules);

  // Nothing, also where the kernel that the choice names is damaged.
  std::optional<KernelCache::Hit> find(const std::string &problem, const std::string &device);
  std::optional<StoredRoute> findRoute(const std::string &family, const std::string &device, const std::string &name);
  std::vector<ChoiceSummary> choicesOf(const std::string &op) const;

  const std::string &path() const { return file; }
  size_t size() const { return choices.size(); }
  // Of all that chooses and all that may run: problems, devices, whether they were measured, the digest of each kernel
  // (manifest and binary), and the thresholds of routes. Equal for two files of which the same is launched.
  std::string digest() const;
  // One line when the table serves although no trusted key has signed it; else "".
  std::string warning() const { return pack ? pack->warning() : ""; }

private:
  explicit PinnedTable(std::string file) : file(std::move(file)) {}
  Status openDatabase();
  std::optional<StoredKernel> findKernel(const std::string &content);

  std::string file;
  std::unique_ptr<Pack> pack; // one of the two
  std::unique_ptr<KernelStore> store;
  PackIndex rows;                     // of the database, as they were when it was opened
  std::vector<ChoiceSummary> choices; // by problem and device
  std::vector<StoredRoute> routes;    // by family, device and name
};

} // namespace nsa
