// Says what may serve a problem that has no kernel of its own: the stored choices that can serve it, in the order in
// which they are tried. docs/deploying_without_a_compiler.md describes the steps of the ladder for users. A step of the
// ladder promises a right result, and no speed. Lengths choose a kernel and are never compiled in, so a kernel that was
// chosen for one length computes a right result at every length. A cubin runs on the devices that its architecture
// names.
// Thread-safety: values and pure functions.
#pragma once

#include "cache/rows.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

// The steps in the order of the ladder.
enum class FallbackStep : int {
  kExact = 0,        // no fallback: stored for this problem and device
  kNearest = 1,      // for other lengths, batches or windows on this model
  kModel = 2,        // for another model of this architecture, or for the architecture alone
  kArchitecture = 3, // for an older architecture whose code this device runs
  kCompiled = 4,     // the default configuration, which was not measured
  kCpu = 5           // another device, where the caller did not choose one
};
inline constexpr int kFallbackSteps = 6;
std::string_view fallbackStepName(FallbackStep step); // "exact", "nearest", "model", "architecture", "compiled", "cpu"

// The fallback steps that an engine may take. Making a plan that needs a forbidden fallback step is an error.
class FallbackSteps {
public:
  // Parses names of steps such as "nearest,model", or "exact" for no step, or "all".
  static Result<FallbackSteps> parse(std::string_view field, std::string_view text);
  static FallbackSteps all() { return FallbackSteps((1u << kFallbackSteps) - 1); }
  FallbackSteps() : FallbackSteps(all()) {}

  bool allows(FallbackStep step) const { return (bits >> static_cast<int>(step) & 1u) != 0; }
  // Returns the text that `parse` reads.
  std::string toString() const;
  bool operator==(const FallbackSteps &) const = default;

private:
  explicit FallbackSteps(uint32_t bits) : bits(bits | 1u) {}
  uint32_t bits; // one for each step; that of kExact is always set
};

// The two halves of Problem::key(): the compiled-in values with the operator in front, and the buckets.
struct KeyParts {
  std::string fixed, buckets;
  static KeyParts of(const std::string &problemKey);
};

struct Rung {
  FallbackStep step;
  ChoiceSummary choice;
  double distance = 0; // sum over the buckets, in powers of two
};

// The problem that a choice must serve. `device` and `target` are this engine's device and target, as choices name
// them.
struct LadderRequest {
  std::string problem, device, target;
  std::string forcedTemplate{}; // "": any
};

// Returns the choices that may serve the request, the best first. The choices are ordered by their steps. Within a step
// a measured choice comes before a choice that was not measured, then the nearer choice, and of two equally near
// choices the choice for longer lengths. Of choices for older architectures the newest architecture comes first.
// `choices` must be in the order of the layers of KernelCache.
std::vector<Rung> rankFallbacks(const LadderRequest &request, const std::vector<ChoiceSummary> &choices);

// Returns the choice that is nearest to a problem, for messages: the nearest choice may be one that cannot serve.
// findNearest returns null when no choice is of the problem's operator.
const ChoiceSummary *findNearest(const LadderRequest &request, const std::vector<ChoiceSummary> &choices);
// Returns how a choice differs from the request: "seqlen_k=2048 instead of 4096, on 'cpu x86-64-v3'".
std::string differenceText(const LadderRequest &request, const ChoiceSummary &choice);

} // namespace nsa
