// Reads a workload file (docs/tuning.md), which names the head layouts, types and ranges of lengths that `nsa tune`
// covers, and single plans. Some workload files come with the program. A program's record of its plans
// (workload_plans.h) can also be used as a workload.
// Thread-safety: values.
#pragma once

#include "autotune/workload/workload_plans.h"
#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

// Which passes of a call are tuned: the call itself, the call of its gradient, or both. A call without a gradient, such
// as one of decode, has no backward pass, and a call of a gradient is itself one.
enum class TuneDirection : uint8_t { kForward, kBackward, kBoth };
std::string_view directionName(TuneDirection direction); // "forward", "backward", "both"

struct Workload {
  struct Head {
    std::string name;
    Spec spec; // of decode; type, layout and pages come from the workload
  };
  struct Prefill {
    std::vector<int64_t> batch = {1}, lengths;
    std::vector<Layout> layouts = {Layout::kDense};
    bool crossover = false; // measures the forward pass against dense attention (tune_crossover.h)
  };
  // Decoding of one new token for each sequence, over a cache with `lengths` tokens.
  struct Decode {
    std::vector<int64_t> batch = {1}, lengths;
    std::vector<int32_t> pageSizes = {0};
  };

  std::string path, name, description;
  std::vector<Head> heads;
  std::vector<DType> dtypes = {DType::kBf16};
  std::optional<Prefill> prefill;
  std::optional<Decode> decode;
  std::vector<PlannedCall> plans;    // are tuned as they were planned
  std::vector<std::string> warnings; // which parts of the file were passed over, and why
  // The operators to which the command line limits a run. Only the command line sets this limit, and a workload file
  // cannot. Empty: all operators.
  std::set<Operator> operators;
  // Only the command line sets it too. Forward: all calls as they are, those of gradients too.
  TuneDirection direction = TuneDirection::kForward;

  bool wants(Operator op) const { return operators.empty() || operators.contains(op); }

  // Reads the text of a workload file or of a program's record of its plans. `path` is the file of the text: a workload
  // that is read from a program's record is named after it. An error names the file, the field's path in it, the value
  // and the rule.
  static Result<Workload> parse(std::string_view text, const std::string &path);
};

// Returns the names of the operators in the order of the enumerators: "dense, window".
std::string operatorsText(const std::set<Operator> &operators);
// The option that chooses the passes. Errors name it.
inline constexpr const char *kDirectionField = "direction";
// The option that limits a run to certain operators. Errors name it.
inline constexpr const char *kOperatorsField = "operators";
// Limits all workloads to kernels of the operators with these names. An operator's name may occur only once. No name:
// no limit.
Status limitTo(const std::vector<std::string> &operators, std::vector<Workload> &workloads);

} // namespace nsa
