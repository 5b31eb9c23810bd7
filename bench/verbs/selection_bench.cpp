#include "bench/measure/bench_report.h"
#include "bench/verbs/length_bench.h"
#include "tools/support/operator_work.h"

namespace nsa::bench {
namespace {

Status measure(BenchDevice &device, const LengthChoice &choice, const BenchCase &benchCase, BenchReport &report) {
  choice.say("selection", benchCase);
  const Spec &spec = benchCase.spec;
  const int64_t tokens = benchCase.maxima.seqlenK;
  const tools::OperatorInputs inputs = tools::drawInputs(spec, {{tokens}, {tokens}}, 1);
  NSA_ASSIGN_OR_RETURN(tools::DeviceOperator job, tools::DeviceOperator::upload(device.accelerator(), inputs, {}));
  const Arena arena{device.accelerator(), inputs, job, device.flush(), choice.warmUps};
  NSA_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<PlanContender>> ours, device.contenders(arena, choice.tuned));
  std::vector<Contender *> everybody;
  for (const auto &contender : ours)
    everybody.push_back(contender.get());
  const std::vector<Result<Times>> times = measureInTurns(everybody, choice.samples);
  const double lists = static_cast<double>(tokens) * spec.kvHeads;
  const double blocks = static_cast<double>((tokens + spec.selBlock - 1) / spec.selBlock);
  for (size_t i = 0; i < everybody.size(); ++i) {
    if (!times[i])
      return times[i].status();
    nlohmann::ordered_json row = caseFields(benchCase);
    row.erase("window");
    row["implementation"] = everybody[i]->name();
    row["median_ms"] = times[i]->medianMs;
    row["fastest_ms"] = times[i]->fastestMs;
    row["slowest_ms"] = times[i]->slowestMs;
    row["million_lists_per_second"] = lists / times[i]->medianMs * 1e-3;
    row["tflops"] = tools::usefulFlops(inputs) / times[i]->medianMs * 1e-9;
    row["lists_mib"] = lists * spec.selCount * 4 / (1 << 20);
    row["workspace_mib"] = static_cast<double>(ours[i]->workspaceBytes()) / (1 << 20);
    row["scores_mib"] = lists * blocks * 4 / (1 << 20);
    row.update(everybody[i]->facts());
    NSA_RETURN_IF_ERROR(report.add(std::move(row)));
  }
  return Status::ok();
}

} // namespace

Result<nlohmann::ordered_json> benchSelection(BenchDevice &device, const LengthChoice &choice) {
  Result<nlohmann::json> machine = device.facts();
  if (!machine)
    return machine.status();
  Result<BenchReport> report =
      BenchReport::create(choice.results, "selection", {{"machine", *machine}, {"samples", choice.samples}},
                          {{"heads", "heads"},
                           {"tokens", "tokens"},
                           {"implementation", "implementation"},
                           {"median ms", "median_ms"},
                           {"million lists/s", "million_lists_per_second"},
                           {"lists MiB", "lists_mib"},
                           {"workspace MiB", "workspace_mib"},
                           {"scores MiB, never written", "scores_mib"}});
  if (!report)
    return report.status();
  for (const NamedSpec &named : choice.specs)
    for (const int64_t tokens : choice.tokens) {
      NSA_RETURN_IF_ERROR(measure(device, choice, promptCase(named.name, named.spec, tokens), *report));
    }
  return report->content();
}

} // namespace nsa::bench
