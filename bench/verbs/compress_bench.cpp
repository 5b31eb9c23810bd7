#include "bench/measure/bench_report.h"
#include "bench/measure/stream_bandwidth.h"
#include "bench/verbs/length_bench.h"
#include "tools/support/operator_work.h"

#include <algorithm>
#include <thread>

namespace nsa::bench {
namespace {

class CompressBench {
public:
  CompressBench(BenchDevice &device, const LengthChoice &choice) : device(device), choice(choice) {}

  Result<nlohmann::ordered_json> run() {
    NSA_RETURN_IF_ERROR(open());
    for (const NamedSpec &named : choice.specs)
      for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp})
        for (const int64_t tokens : choice.tokens) {
          BenchCase benchCase = promptCase(named.name, named.spec, tokens);
          benchCase.spec.cmpKind = kind;
          if (kind == CmpKind::kMlp && benchCase.spec.mlpHidden == 0)
            benchCase.spec.mlpHidden = benchCase.spec.qkDim;
          NSA_RETURN_IF_ERROR(measure(benchCase));
        }
    return report->content();
  }

private:
  Status open() {
    NSA_ASSIGN_OR_RETURN(nlohmann::json machine, device.facts());
    nlohmann::ordered_json facts = {{"machine", machine}, {"samples", choice.samples}};
    if (!device.accelerator().isCuda()) {
      const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
      stream.emplace(threads);
      facts["stream"] = {{"threads", threads}, {"gigabytes_per_second", stream->gigabytesPerSecond()}};
    } else {
      deviceName = machine["device"].value("name", "");
    }
    NSA_ASSIGN_OR_RETURN(report, BenchReport::create(choice.results, "compress", facts,
                                                     {{"heads", "heads"},
                                                      {"kind", "cmp_kind"},
                                                      {"tokens", "tokens"},
                                                      {"implementation", "implementation"},
                                                      {"median ms", "median_ms"},
                                                      {"GB/s", "gigabytes_per_second"},
                                                      {"% of stream", "percent_of_stream"},
                                                      {"TFLOP/s", "tflops"}}));
    return Status::ok();
  }

  // Measured between the kernels of a case, as its neighbours on the machine are then; of a GPU it is known or not.
  double streamBandwidth(DType dtype) {
    if (stream)
      return stream->gigabytesPerSecond();
    const std::optional<Roof> roof = roofOf(deviceName, dtype);
    return roof ? roof->terabytesPerSecond * 1e3 : 0;
  }

  Status measure(const BenchCase &benchCase) {
    choice.say("compress " + std::string(cmpKindName(benchCase.spec.cmpKind)), benchCase);
    const int64_t tokens = benchCase.maxima.seqlenK;
    const tools::OperatorInputs inputs = tools::drawInputs(benchCase.spec, {{tokens}, {tokens}}, 1);
    NSA_ASSIGN_OR_RETURN(tools::DeviceOperator job, tools::DeviceOperator::upload(device.accelerator(), inputs, {}));
    const Arena arena{device.accelerator(), inputs, job, device.flush(), choice.warmUps};
    NSA_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<PlanContender>> ours, device.contenders(arena, choice.tuned));
    std::vector<Contender *> everybody;
    for (const auto &contender : ours)
      everybody.push_back(contender.get());
    const std::vector<Result<Times>> times = measureInTurns(everybody, choice.samples);
    const double bandwidth = streamBandwidth(benchCase.spec.dtype);
    const tools::PartWork work = tools::workByPart(inputs).front();
    for (size_t i = 0; i < everybody.size(); ++i) {
      if (!times[i])
        return times[i].status();
      const double milliseconds = times[i]->medianMs;
      nlohmann::ordered_json row = caseFields(benchCase);
      row.erase("window");
      row["cmp_kind"] = cmpKindName(benchCase.spec.cmpKind);
      row["implementation"] = everybody[i]->name();
      row["median_ms"] = milliseconds;
      row["fastest_ms"] = times[i]->fastestMs;
      row["slowest_ms"] = times[i]->slowestMs;
      row["gigabytes_per_second"] = work.bytes / milliseconds * 1e-6;
      row["percent_of_stream"] = nullptr;
      if (bandwidth > 0)
        row["percent_of_stream"] = 100 * work.bytes / milliseconds * 1e-6 / bandwidth;
      row["tflops"] = nullptr;
      if (work.flops > 0)
        row["tflops"] = work.flops / milliseconds * 1e-9;
      row.update(everybody[i]->facts());
      NSA_RETURN_IF_ERROR(report->add(std::move(row)));
    }
    return Status::ok();
  }

  BenchDevice &device;
  const LengthChoice &choice;
  std::optional<StreamBandwidth> stream; // of a CPU
  std::string deviceName;
  std::optional<BenchReport> report;
};

} // namespace

Result<nlohmann::ordered_json> benchCompress(BenchDevice &device, const LengthChoice &choice) {
  return CompressBench(device, choice).run();
}

} // namespace nsa::bench
