#include "bench/verbs/length_bench.h"
#include "tools/support/operator_work.h"

namespace nsa::bench {
namespace {

Status measure(BenchDevice &device, const LengthChoice &choice, const BenchCase &benchCase, BenchReport &report) {
  choice.say("selection", benchCase);
  const Spec &spec = benchCase.spec;
  const int64_t tokens = benchCase.maxima.seqlenK;
  const double lists = static_cast<double>(tokens) * spec.kvHeads;
  const double blocks = static_cast<double>((tokens + spec.selBlock - 1) / spec.selBlock);
  nlohmann::ordered_json fields = caseFields(benchCase);
  fields.erase("window");
  return choice.measure(
      device, benchCase, fields, report,
      [&](nlohmann::ordered_json &row, const PlanContender &plan, const Arena &arena, double milliseconds) {
        row["million_lists_per_second"] = lists / milliseconds * 1e-3;
        row["tflops"] = tools::usefulFlops(arena.inputs) / milliseconds * 1e-9;
        row["lists_mib"] = lists * spec.selCount * 4 / (1 << 20);
        row["workspace_mib"] = static_cast<double>(plan.workspaceBytes()) / (1 << 20);
        row["scores_mib"] = lists * blocks * 4 / (1 << 20);
      });
}

} // namespace

Result<nlohmann::ordered_json> benchSelection(BenchDevice &device, const LengthChoice &choice) {
  NSA_ASSIGN_OR_RETURN(BenchReport report,
                       choice.report(device, "selection",
                                     {"heads", "tokens", "implementation", "median ms = median_ms",
                                      "million lists/s = million_lists_per_second", "lists MiB = lists_mib",
                                      "workspace MiB = workspace_mib", "scores MiB, never written = scores_mib"}));
  for (const NamedSpec &named : choice.specs)
    for (const int64_t tokens : choice.tokens)
      NSA_RETURN_IF_ERROR(measure(device, choice, promptCase(named.name, named.spec, tokens), report));
  return report.content();
}

} // namespace nsa::bench
