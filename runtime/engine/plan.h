// What one spec and its maxima run: a loaded kernel and how it was found. The engine keeps a PlanCore per problem it
// has planned; each Plan that a caller holds adds its own status word.
// Ownership: a Plan keeps its engine alive. Thread-safety: immutable; `run` may be called by many threads at once.
#pragma once

#include "runtime/engine/loaded_kernel.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace nsa {

class Engine;

enum class PlanSource { kMemory, kDatabase, kCompiled };
std::string_view planSourceName(PlanSource source); // "memory", "database", "compiled"

struct PlanTimes {
  double lookupMs = 0, renderMs = 0, compileMs = 0, tuneMs = 0, loadMs = 0;
};

struct PlanCore {
  Spec spec;
  Maxima maxima;
  std::string problemKey;
  std::shared_ptr<const LoadedKernel> kernel;
  PlanSource source = PlanSource::kMemory;
  bool tuned = false;
  std::vector<std::string> fallbacks; // what was tried before and why it did not serve
  PlanTimes times;

  // Checks the bindings and launches. No lock, no allocation, no text but on an error.
  Status run(const Device &device, const Bindings &bindings, void *statusWord, void *workspace, size_t workspaceBytes,
             void *stream) const;
};

class Plan {
public:
  // `source` is where this plan came from, which is memory for the second one of a core.
  static Result<std::unique_ptr<Plan>> make(std::shared_ptr<Engine> engine, std::shared_ptr<const PlanCore> core,
                                            PlanSource source, PlanTimes times);
  ~Plan();

  Status run(const Bindings &bindings, void *workspace, size_t workspaceBytes, void *stream) const;
  Status status(void *stream);
  size_t workspaceBytes() const { return core->kernel->workspaceBytes(); }
  // JSON, composed when first asked for.
  const std::string &describe() const;

private:
  Plan(std::shared_ptr<Engine> engine, std::shared_ptr<const PlanCore> core, PlanSource source, PlanTimes times)
      : engine(std::move(engine)), core(std::move(core)), source(source), times(times) {}

  std::shared_ptr<Engine> engine;
  std::shared_ptr<const PlanCore> core;
  PlanSource source;
  PlanTimes times;
  void *statusWord = nullptr;
  mutable std::once_flag described;
  mutable std::string description;
};

} // namespace nsa
