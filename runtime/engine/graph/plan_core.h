// The kernels of a plan, and how each kernel was found or made. Plans with the same plan key (plan_key.h) share a
// PlanCore.
// Ownership: a PlanCore shares its kernels with other plan cores.
// Thread-safety: a PlanCore does not change after it was made.
#pragma once

#include "runtime/engine/choices/choice_source.h"
#include "runtime/engine/choices/fallback_ladder.h"
#include "runtime/engine/graph/pipeline.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

// The enumerators are in ascending order, because the source of a plan is the greatest PlanSource of its kernels.
enum class PlanSource { kMemory, kDatabase, kPack, kCompiled };
std::string_view planSourceName(PlanSource source); // "memory", "database", "pack", "compiled"
inline PlanSource sourceOf(const ChoiceSource::Hit &hit) {
  return hit.layer > 0 ? PlanSource::kPack : PlanSource::kDatabase;
}

// The time that each step of making the kernels of a plan took.
struct PlanTimes {
  double lookupMs = 0, renderMs = 0, compileMs = 0, tuneMs = 0, loadMs = 0;
};

// One kernel, and how it was found or made.
struct KernelCore {
  std::string problemKey;
  std::shared_ptr<const LoadedKernel> kernel;
  PlanSource source = PlanSource::kMemory;
  bool tuned = false; // measured on this device model
  FallbackStep step = FallbackStep::kExact;
  bool outdated = false; // made by another compiler revision; it serves until it is made again in the background
  std::string servedBy;  // for a stored fallback: how its key differs
  std::vector<std::string> fallbacks; // what was tried before and why it did not serve
  PlanTimes times;

  // Returns whether the kernel is less than a winner that was measured for the problem, as this compiler makes it.
  // `isTuned`: kernels of the problem are measured.
  bool wantsTuning(bool isTuned) const { return outdated || (isTuned && !(tuned && step == FallbackStep::kExact)); }
};

// The kernels of an operator, in the order of their launches.
struct PlanCore {
  struct Part {
    Step step;
    std::shared_ptr<const KernelCore> kernel;
  };
  PlanCore() = default;
  // Returns an error if a kernel takes a tensor as another type than the spec says (checkTypes).
  static Result<std::shared_ptr<const PlanCore>> make(std::vector<Part> parts);

  std::vector<Part> parts;
  size_t scratchBytes = 0;                 // the largest scratch of a kernel
  std::vector<LaunchStep> launches;        // what a run replays
  uint8_t routes = 0;                      // the shortcuts that the steps take
  int32_t keySplits = 0;                   // Spec::keySplits of the steps
  bool dqSlots = false;                    // Spec::dqSlots of the steps
  bool decodeStep = false;                 // Spec::decodeStep of the plan
  PlanSource source = PlanSource::kMemory; // kCompiled when at least one kernel was compiled

  // Returns an error if `maxima` need a grid that is larger than the device can launch.
  Status checkGrids(const Spec &spec, const Maxima &maxima) const;
};

} // namespace nsa
