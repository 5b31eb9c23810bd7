// The choices of one pack or database, which the option pin_path names. An engine with a pinned table takes choices
// only from this table. An engine with a pinned table tunes nothing, so all processes with one pinned file run the same
// kernels. A pinned file is opened once and never written. If another process changes rows of a pinned file while the
// engine is open, the engine uses none of the changed rows.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "cache/kernel_store.h"
#include "cache/pack.h"
#include "cache/pack/pack_index.h"
#include "runtime/engine/choices/choice_source.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

class PinnedTable final : public ChoiceSource {
public:
  // `open` fails on a file that is missing, damaged or refused, because an engine without the pinned table would choose
  // other kernels. Where `rules` require a signature, only a pack can be pinned. An error names `source`, which is the
  // option or the variable that gave the path.
  static Result<std::unique_ptr<PinnedTable>> open(const std::string &source, const std::string &path,
                                                   const SignatureRules &rules);

  // Returns nullopt if the table has no choice for the problem and the device, or if the kernel of the choice is
  // damaged.
  std::optional<Hit> find(const std::string &problem, const std::string &device) override;
  std::optional<StoredRoute> findRoute(const std::string &family, const std::string &device,
                                       const std::string &name) override;
  std::vector<ChoiceSummary> choicesOf(const std::string &op) override;

  bool takesChoices() const override { return false; }
  std::string layerPath(int) override { return file; }
  std::string places() override { return file; }
  std::string trouble() const override { return ""; } // `open` refuses a file that has any
  const std::string &path() const { return file; }
  size_t size() const { return choices.size(); }
  // Returns a digest over the problem and device of each choice, whether the choice was measured, the manifest and the
  // binary of its kernel, and the thresholds of routes. Engines whose pinned files have the same digest launch the same
  // kernels.
  std::string digest() const;
  // Returns a warning of one line if no trusted key has signed the pinned pack; otherwise "".
  std::string warning() const { return pack ? pack->warning() : ""; }

private:
  explicit PinnedTable(std::string file) : file(std::move(file)) {}
  Status openDatabase(const std::string &source);
  std::optional<StoredKernel> findKernel(const std::string &content);

  std::string file;
  std::unique_ptr<Pack> pack; // either this or `store` is set
  std::unique_ptr<KernelStore> store;
  PackIndex rows;                     // the rows of a database when it was opened
  std::vector<ChoiceSummary> choices; // ordered by problem and device
  std::vector<StoredRoute> routes;    // ordered by family, device and name
};

} // namespace nsa
