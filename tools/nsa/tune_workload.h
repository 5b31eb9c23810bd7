// A workload file (docs/tuning.md): the head layouts, types and ranges of lengths that `nsa tune` covers, and the files
// that come with the program.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nsa::tools {

struct Workload {
  struct Head {
    std::string name;
    Spec spec; // of nsa and decode; type, layout and pages are the workload's
  };
  struct Prefill {
    std::vector<int64_t> batch = {1}, lengths;
    std::vector<Layout> layouts = {Layout::kDense};
    bool crossover = false; // measured against dense attention (tune_crossover.h)
  };
  // One new token of each sequence over a cache of so many.
  struct Decode {
    std::vector<int64_t> batch = {1}, lengths;
    std::vector<int32_t> pageSizes = {0};
  };

  std::string path, name, description;
  std::vector<Head> heads;
  std::vector<DType> dtypes = {DType::kBf16};
  std::optional<Prefill> prefill;
  std::optional<Decode> decode;
  // No field of the file: a run may be limited to kernels of these. Empty: all.
  std::set<Operator> operators;

  bool wants(Operator op) const { return operators.empty() || operators.contains(op); }

  // An error names the file, the field's path in it, the value and the rule.
  static Result<Workload> read(const std::string &path);
};

// Where the workloads that come with the program are, seen from where it stands.
std::string workloadFolder();
// Names of the workloads in a folder, ascending; their files are NAME.json.
std::vector<std::string> readyWorkloads(const std::string &folder);
// The file of that path, where the word looks like one (it ends in .json or holds a slash), else the ready-made one.
Result<Workload> findWorkload(const std::string &word, const std::string &folder);
// Those of several words, of which `all` is every ready-made one. Each may stand there once.
Result<std::vector<Workload>> findWorkloads(const std::vector<std::string> &words, const std::string &folder);
// "dense, window": in the order of the enumerators.
std::string operatorsText(const std::set<Operator> &operators);
// The command line's word for such a limit, which errors name.
inline constexpr const char *kOperatorsField = "--operators";
// Limits all of them to kernels of the operators of these names, each of which stands there once. None: no limit.
Status limitTo(const std::vector<std::string> &operators, std::vector<Workload> &workloads);

} // namespace nsa::tools
