// Reads a pack. A pack is a read-only file that is made once and then shipped. It has compiled kernels, choices (which
// kernel computes a problem) and routes (measured thresholds between two algorithms). The digest of a pack is checked
// when the pack is opened. Later lookups return only rows that the pack had when its digest was checked
// (cache/pack/pack_index.h). A kernel whose row in the file has changed since the pack was opened counts as not found.
// Thread-safety: many threads may call all functions of a Pack at once. After a fork, parent and child may both use the
// pack: each process opens the pack's file again in its next call. If the file that a process opens again has another
// digest than the pack, the process stops using the pack.
#pragma once

#include "cache/database/signing_key.h"
#include "cache/kernel_store.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

class Pack {
public:
  static Result<std::unique_ptr<Pack>> open(const std::string &path, const SignatureRules &rules);
  ~Pack();

  // A lookup returns nullopt if the pack does not have the row, or if the row is damaged. Damaged rows are counted.
  std::optional<StoredChoice> findChoice(const std::string &problem, const std::string &device);
  std::optional<StoredKernel> findKernel(const std::string &content);
  std::optional<StoredRoute> findRoute(const std::string &family, const std::string &device, const std::string &name);
  // Appends the pack's choices for an operator to `choices`, and sets the field `layer` of each to `layer`.
  void summarizeChoices(const std::string &op, int layer, std::vector<ChoiceSummary> &choices);

  // Returns all routes in ascending order of family, device and name. The field `evidence` of the returned routes is
  // empty.
  std::vector<StoredRoute> listRoutes();

  std::string path() const;
  // Returns one line when the pack is used although no trusted key has signed it; otherwise "".
  std::string warning() const;
  // Returns "" while the pack is in use, and later the reason why the pack is no longer used.
  std::string trouble() const;
  StoreCounters counters() const;

private:
  struct State;
  explicit Pack(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace nsa
