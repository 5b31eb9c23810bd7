// What may serve a problem that has no kernel of its own: the stored choices that are fit to, in the order in which
// they are tried. docs/deploying_without_a_compiler.md has the steps in a user's words. A step is a promise about
// correctness, not about speed: lengths choose a kernel and are never compiled in, so a kernel of another length
// computes the same; a cubin runs on what its architecture says. Thread-safety: values and pure functions.
#pragma once

#include "cache/rows.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

// In the order of the ladder.
enum class FallbackStep : int {
  kExact = 0,        // no fallback: stored for this problem and device
  kNearest = 1,      // for other lengths, batches or windows on this model
  kModel = 2,        // for another model of this architecture, or for the architecture alone
  kArchitecture = 3, // for an older architecture whose code this device runs
  kCompiled = 4,     // the default configuration, which nobody measured
  kCpu = 5           // another device, where nobody chose one
};
inline constexpr int kFallbackSteps = 6;
std::string_view fallbackStepName(FallbackStep step); // "exact", "nearest", "model", "architecture", "compiled", "cpu"

// Which of them an engine may take; what is left out is an error instead.
class FallbackSteps {
public:
  // "nearest,model", "exact" for none, "all".
  static Result<FallbackSteps> parse(std::string_view field, std::string_view text);
  static FallbackSteps all() { return FallbackSteps((1u << kFallbackSteps) - 1); }
  FallbackSteps() : FallbackSteps(all()) {}

  bool allows(FallbackStep step) const { return (bits >> static_cast<int>(step) & 1u) != 0; }
  // As `parse` reads it.
  std::string toString() const;
  bool operator==(const FallbackSteps &) const = default;

private:
  explicit FallbackSteps(uint32_t bits) : bits(bits | 1u) {}
  uint32_t bits; // of the steps; the exact one always
};

// The two halves of Problem::key(): what is compiled in, with the operator in front, and the buckets.
struct KeyParts {
  std::string fixed, buckets;
  static KeyParts of(const std::string &problemKey);
};

struct Rung {
  FallbackStep step;
  ChoiceSummary choice;
  double distance = 0; // of the buckets, in powers of two
};

// What a choice must serve. `device` and `target` are this engine's, as choices name them.
struct LadderRequest {
  std::string problem, device, target;
  std::string forcedTemplate{}; // "": any
};

// Those that may serve, best first: by step; within it what was measured before what was not; then the nearest, of two
// equally near the one for longer lengths. Of an older architecture the newest comes first. `choices` in the order of
// their layers.
std::vector<Rung> rankFallbacks(const LadderRequest &request, const std::vector<ChoiceSummary> &choices);

// The choice nearest to a problem, whether or not it may serve: for messages. Null: none is of the operator.
const ChoiceSummary *findNearest(const LadderRequest &request, const std::vector<ChoiceSummary> &choices);
// "seqlen_k=2048 instead of 4096, on 'cpu x86-64-v3'": how a choice differs from what was asked.
std::string differenceText(const LadderRequest &request, const ChoiceSummary &choice);

} // namespace nsa
