// If no kernel is stored for a problem, the planner may use a kernel that was stored for another problem (a fallback),
// for example for another length. The miss policy (MissPolicy) says whether it may. fallback_ladder.h ranks the stored
// kernels that can serve as fallbacks.
// docs/deploying_without_a_compiler.md describes the kinds of fallbacks for users. Every fallback computes correct
// results, but it may be slower than a kernel that was tuned for the problem. Lengths are never compiled into a kernel,
// so a kernel that was stored for one length computes correct results at every length. A cubin runs only on devices for
// whose architecture (sm_90a, ...) it was compiled, or on newer devices where that architecture allows it.
// Thread-safety: values and pure functions.
#pragma once

#include "cache/rows/rows.h"
#include "runtime/base/status.h"
#include "runtime/engine/choices/problem_key.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

// What an engine does when no choice is stored for a problem.
// The numbers of MissPolicy are part of the C ABI (nsa_miss_policy in nsa/nsa.h).
enum class MissPolicy : int { kDefault = 0, kFail = 1, kTune = 2, kBackground = 3 };

// The kinds of kernels that can be used for a problem, from the best to the worst.
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

// The set of fallback steps that the engine's option `fallbacks` allows. Making a plan that needs a fallback step
// outside of the allowed set is an error.
class FallbackSteps {
public:
  // Parses names of fallback steps such as "nearest,model", or "exact" or "none" for no fallback, or "all".
  static Result<FallbackSteps> parse(std::string_view field, std::string_view text);
  static FallbackSteps all() { return FallbackSteps((1u << kFallbackSteps) - 1); }
  // The set of these steps and kExact.
  static FallbackSteps of(std::initializer_list<FallbackStep> steps) {
    uint32_t bits = 0;
    for (const FallbackStep step : steps)
      bits |= 1u << static_cast<int>(step);
    return FallbackSteps(bits);
  }
  FallbackSteps() : FallbackSteps(all()) {}

  bool allows(FallbackStep step) const { return (bits >> static_cast<int>(step) & 1u) != 0; }
  // Returns the names of the allowed steps as a text that `parse` accepts.
  std::string toString() const;
  bool operator==(const FallbackSteps &) const = default;

private:
  explicit FallbackSteps(uint32_t bits) : bits(bits | 1u) {}
  uint32_t bits; // one for each step; that of kExact is always set
};

struct Rung {
  FallbackStep step;
  ChoiceSummary choice;
  int distance = 0; // sum over the buckets, in powers of two
};

// A search for stored choices: the problem, and the names of this engine's device and target as stored choices write
// them.
struct LadderRequest {
  ProblemKey problem;
  std::string device, target;
  std::string forcedTemplate{}; // "": any
};

// Returns the choices whose kernels can be used for the request, the best first. Two choices are compared by these
// criteria, in this order:
// 1. The better FallbackStep comes first.
// 2. Of two choices of the step kArchitecture, the choice for the newer architecture comes first.
// 3. A measured choice comes before a choice that was not measured.
// 4. The choice with the smaller `distance` comes first.
// 5. The choice for the larger sizes comes first.
// The array `choices` must contain first the choices of the database, and then the choices of the packs in the order in
// which the engine searches the packs.
std::vector<Rung> rankFallbacks(const LadderRequest &request, const std::vector<ChoiceSummary> &choices);

// Returns the choice with the smallest distance from the request's problem, for messages. It is possible that the
// engine cannot use the kernel of the choice that findNearest returns. findNearest returns null if no choice is stored
// for the problem's operator.
const ChoiceSummary *findNearest(const LadderRequest &request, const std::vector<ChoiceSummary> &choices);
// Returns how a choice differs from the request: "seqlen_k=2048 instead of 4096, on 'cpu x86-64-v3'".
std::string differenceText(const LadderRequest &request, const ChoiceSummary &choice);

} // namespace nsa
