// A workload file, or the record of a program. What was read is written in one canonical way and read again.
#include "tests/fuzz/fuzz_target.h"

#include "runtime/base/config_text.h"
#include "tools/nsa/files/find_workload.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>

namespace nsa::fuzz {
namespace {

using nlohmann::json;

void checkAscending(const std::vector<int64_t> &numbers, int64_t least, int64_t most) {
  expect(!numbers.empty() && numbers.size() <= 64 && numbers.front() >= least && numbers.back() <= most,
         "numbers are within their limits");
  expect(std::ranges::adjacent_find(numbers, std::greater_equal()) == numbers.end(), "numbers ascend");
}

void checkRules(const Workload &workload) {
  expect(!workload.dtypes.empty(), "there are types");
  expect(workload.heads.empty() == !(workload.prefill || workload.decode), "heads are there for prefill or decode");
  expect(!workload.heads.empty() || !workload.plans.empty(), "there is something to tune");
  for (const PlannedCall &plan : workload.plans)
    expect(plan.spec.validate().isOk() && plan.maxima.validate(plan.spec).isOk(), "a plan is one that holds");
  for (const Workload::Head &head : workload.heads) {
    expect(!head.name.empty() && head.name.size() <= 64, "heads have names");
    expect(head.spec.validate().isOk(), "a head is a specification that holds");
    expect(std::ranges::count(workload.heads, head.name, &Workload::Head::name) == 1, "a head's name stands once");
  }
  if (workload.prefill) {
    checkAscending(workload.prefill->batch, 1, 65536);
    checkAscending(workload.prefill->lengths, 1, int64_t{1} << 22);
    expect(!workload.prefill->layouts.empty() && workload.prefill->layouts.size() <= 2, "layouts stand once");
  }
  if (workload.decode) {
    checkAscending(workload.decode->batch, 1, 65536);
    checkAscending(workload.decode->lengths, 1, int64_t{1} << 22);
    checkAscending({workload.decode->pageSizes.begin(), workload.decode->pageSizes.end()}, 0, 65536);
  }
}

json configOf(const Spec &spec) {
  json config = {{"query_heads", spec.queryHeads},
                 {"kv_heads", spec.kvHeads},
                 {"qk_dim", spec.qkDim},
                 {"v_dim", spec.vDim},
                 {"window", spec.window},
                 {"scale", spec.scale},
                 {"cmp_block", spec.cmpBlock},
                 {"cmp_stride", spec.cmpStride},
                 {"sel_block", spec.selBlock},
                 {"sel_count", spec.selCount},
                 {"init_blocks", spec.initBlocks},
                 {"local_blocks", spec.localBlocks},
                 {"cmp_kind", cmpKindName(spec.cmpKind)},
                 {"mlp_activation", activationName(spec.mlpActivation)},
                 {"gate", gateName(spec.gate)},
                 {"gate_per_group", spec.gatePerGroup}};
  if (spec.mlpHidden > 0)
    config["mlp_hidden"] = spec.mlpHidden;
  for (const auto &[bit, name] :
       {std::pair(kBranchCmp, "cmp"), std::pair(kBranchSel, "sel"), std::pair(kBranchWin, "win")})
    if (spec.hasBranch(bit))
      config["branches"].push_back(name);
  return config;
}

std::string print(const Workload &workload) {
  json text = {{"name", workload.name}};
  if (!workload.description.empty())
    text["description"] = workload.description;
  for (const PlannedCall &plan : workload.plans)
    text["plans"].push_back(json::parse(planText(plan.spec, plan.maxima)));
  for (const Workload::Head &head : workload.heads)
    text["heads"].push_back({{"name", head.name}, {"config", configOf(head.spec)}});
  for (const DType dtype : workload.heads.empty() ? std::vector<DType>() : workload.dtypes)
    text["dtypes"].push_back(dtypeName(dtype));
  if (workload.prefill) {
    text["prefill"] = {{"batch", workload.prefill->batch}, {"lengths", workload.prefill->lengths}};
    for (const Layout layout : workload.prefill->layouts)
      text["prefill"]["layouts"].push_back(layoutName(layout));
  }
  if (workload.decode)
    text["decode"] = {{"batch", workload.decode->batch},
                      {"lengths", workload.decode->lengths},
                      {"page_sizes", workload.decode->pageSizes}};
  return text.dump();
}

void runWorkload(std::string_view input) {
  const std::string path = writeInput("input.json", input);
  const Result<Workload> workload = tools::readWorkload(path);
  if (!workload) {
    expect(workload.status().toString().find(path) != std::string::npos, "what is refused names the file");
    return;
  }
  checkRules(*workload);
  const std::string text = print(*workload);
  const Result<Workload> again = tools::readWorkload(writeInput("again.json", text));
  expect(again.isOk(), "what was printed is read");
  expect(print(*again) == text, "what was printed is read as the same");
}

const Registration kWorkload({"workload", runWorkload});

} // namespace
} // namespace nsa::fuzz
