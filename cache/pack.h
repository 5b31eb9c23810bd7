// A pack in use: a read-only file of kernels, choices and routes that was made once and is shipped. Its digest is
// compared on opening, and what serves later is what it was computed of (cache/pack_index.h): a kernel that has another
// digest by then is a miss.
// Thread-safety: all functions may be called by many threads at once. A pack survives a fork in parent and child: each
// side opens it anew with its next call, and does without when another file stands there by then.
#pragma once

#include "cache/kernel_store.h"
#include "cache/signing_key.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

class Pack {
public:
  // An error says why the pack is not used.
  static Result<std::unique_ptr<Pack>> open(const std::string &path, const SignatureRules &rules);
  ~Pack();

  // nullopt: not there, or damaged (counted).
  std::optional<StoredChoice> findChoice(const std::string &problem, const std::string &device);
  std::optional<StoredKernel> findKernel(const std::string &content);
  std::optional<StoredRoute> findRoute(const std::string &family, const std::string &device, const std::string &name);
  // Appended as of layer `layer`.
  void summarizeChoices(const std::string &op, int layer, std::vector<ChoiceSummary> &choices);

  // Ascending by family, device and name, without evidence.
  std::vector<StoredRoute> listRoutes();

  std::string path() const;
  // One line when it serves although no trusted key has signed it; else "".
  std::string warning() const;
  // "" while it serves; else why no longer.
  std::string trouble() const;
  StoreCounters counters() const;

private:
  struct State;
  explicit Pack(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace nsa
