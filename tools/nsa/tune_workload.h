// A workload file (docs/tuning.md): the head layouts, types and ranges of lengths that `nsa tune` covers, and single
// plans. Some workload files come with the program. The record of a program is a workload too: its lines are plans.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"
#include "tools/nsa/workload_plans.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nsa::tools {

struct Workload {
  struct Head {
    std::string name;
    Spec spec; // for nsa and decode; type, layout and pages come from the workload
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
  // The operators to which a run is limited, which are no field of the workload file. Empty: all.
  std::set<Operator> operators;

  bool wants(Operator op) const { return operators.empty() || operators.contains(op); }

  // Reads a workload, or a record of a program, whose name as a workload is the name of its file. An error names the
  // file, the field's path in it, the value and the rule.
  static Result<Workload> read(const std::string &path);
};

// The folder of the workloads that come with the program, found from the program's own place.
std::string workloadFolder();
// The names of the workloads in a folder, in ascending order. Their files are NAME.json.
std::vector<std::string> readyWorkloads(const std::string &folder);
// Reads the file with that path where the word looks like a path (it ends in .json or contains a slash). Reads the
// ready-made workload of a name that does not look like a path. If no ready-made workload has the name, reads the file
// of that name in the working folder.
Result<Workload> findWorkload(const std::string &word, const std::string &folder);
// The workloads of several words. The word `all` means every ready-made workload. A workload may be named only once.
Result<std::vector<Workload>> findWorkloads(const std::vector<std::string> &words, const std::string &folder);
// The names in the order of the enumerators: "dense, window".
std::string operatorsText(const std::set<Operator> &operators);
// The option that limits a run to operators. Errors name it.
inline constexpr const char *kOperatorsField = "--operators";
// Limits all workloads to kernels of the operators with these names. An operator's name may occur only once. No name:
// no limit.
Status limitTo(const std::vector<std::string> &operators, std::vector<Workload> &workloads);

} // namespace nsa::tools
