// A pack in use: a read-only file of kernels, choices and routes that is made once and then shipped. Its digest is
// checked on opening. What serves later is what that digest was computed from (cache/pack_index.h): a kernel that has
// another digest by then is a miss.
// Thread-safety: all functions may be called by many threads at once. A pack survives a fork in parent and child. Each
// side opens it anew with its next call, and does without it when the path names another file by then.
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

  // nullopt: the pack does not have it, or it is damaged (which is counted).
  std::optional<StoredChoice> findChoice(const std::string &problem, const std::string &device);
  std::optional<StoredKernel> findKernel(const std::string &content);
  std::optional<StoredRoute> findRoute(const std::string &family, const std::string &device, const std::string &name);
  // Appends the choices of an operator, with `layer` as their layer.
  void summarizeChoices(const std::string &op, int layer, std::vector<ChoiceSummary> &choices);

  // All routes in ascending order of family, device and name, without evidence.
  std::vector<StoredRoute> listRoutes();

  std::string path() const;
  // One line when the pack serves although no trusted key has signed it; otherwise "".
  std::string warning() const;
  // "" while the pack serves; otherwise the reason why it no longer does.
  std::string trouble() const;
  StoreCounters counters() const;

private:
  struct State;
  explicit Pack(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace nsa
