// Measures selection alone and compression alone.
#include "bench/measure/stream_bandwidth.h"
#include "bench/verbs/length_bench.h"
#include "tools/support/operator_work.h"

#include <algorithm>
#include <thread>

namespace nsa::bench {
namespace {

Status measureSelection(BenchDevice &device, const LengthChoice &choice, const BenchCase &benchCase,
                        BenchReport &report) {
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

// `bandwidth` in GB/s; 0: it is not known.
Status measureCompression(BenchDevice &device, const LengthChoice &choice, const BenchCase &benchCase, double bandwidth,
                          BenchReport &report) {
  const std::string kind(cmpKindName(benchCase.spec.cmpKind));
  choice.say("compress " + kind, benchCase);
  nlohmann::ordered_json fields = caseFields(benchCase);
  fields.erase("window");
  fields["cmp_kind"] = kind;
  return choice.measure(
      device, benchCase, fields, report,
      [&](nlohmann::ordered_json &row, const PlanContender &, const Arena &arena, double milliseconds) {
        const tools::PartWork work = tools::workByPart(arena.inputs).front();
        row["gigabytes_per_second"] = work.bytes / milliseconds * 1e-6;
        row["percent_of_stream"] = nullptr;
        if (bandwidth > 0)
          row["percent_of_stream"] = 100 * work.bytes / milliseconds * 1e-6 / bandwidth;
        row["tflops"] = nullptr;
        if (work.flops > 0)
          row["tflops"] = work.flops / milliseconds * 1e-9;
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
      NSA_RETURN_IF_ERROR(measureSelection(device, choice, promptCase(named.name, named.spec, tokens), report));
  return report.content();
}

Result<nlohmann::ordered_json> benchCompress(BenchDevice &device, const LengthChoice &choice) {
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  std::optional<StreamBandwidth> stream; // of a CPU
  if (!device.accelerator().isCuda()) {
    const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    stream.emplace(threads);
    facts["stream"] = {{"threads", threads}, {"gigabytes_per_second", stream->gigabytesPerSecond()}};
  }
  NSA_ASSIGN_OR_RETURN(BenchReport report, choice.report(device, "compress",
                                                         {"heads", "kind = cmp_kind", "tokens", "implementation",
                                                          "median ms = median_ms", "GB/s = gigabytes_per_second",
                                                          "% of stream = percent_of_stream", "TFLOP/s = tflops"},
                                                         facts));
  for (const NamedSpec &named : choice.specs)
    for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp})
      for (const int64_t tokens : choice.tokens) {
        BenchCase benchCase = promptCase(named.name, named.spec, tokens);
        benchCase.spec.cmpKind = kind;
        if (kind == CmpKind::kMlp && benchCase.spec.mlpHidden == 0)
          benchCase.spec.mlpHidden = benchCase.spec.qkDim;
        // A CPU's bandwidth is measured anew beside each case, as its neighbours on the machine are then.
        const std::optional<Roof> roof = roofOf(report.deviceText("name"), benchCase.spec.dtype);
        const double bandwidth = stream ? stream->gigabytesPerSecond() : roof ? roof->terabytesPerSecond * 1e3 : 0;
        NSA_RETURN_IF_ERROR(measureCompression(device, choice, benchCase, bandwidth, report));
      }
  return report.content();
}

} // namespace nsa::bench
