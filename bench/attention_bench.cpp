// nsa_bench_attention: speed of the attention operators on one device, with the compiler's best guess and with the
// tuner's winner, written into a folder of results. Every measured kernel has been checked on sampled rows first.
#include "bench/bench_report.h"
#include "bench/machine_facts.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <thread>

namespace nsa::bench {
namespace {

struct Flags {
  std::string device = "cpu", results, compiler;
  std::vector<std::string> dtypes = {"bf16"};
  int repeats = 21;
  double tuneBudget = 60;
  bool quick = false, noTune = false;
};

Result<tools::EngineHandle> openEngine(const Flags &flags, nsa_miss_policy policy) {
  tools::EngineSettings settings;
  settings.device = flags.device;
  settings.cachePath = ":memory:"; // what an earlier run stored must not be measured
  settings.missPolicy = policy;
  settings.tuneBudgetSeconds = flags.tuneBudget;
  settings.compilerPath = flags.compiler;
  return tools::createEngine(settings);
}

Status run(const Flags &flags) {
  Result<std::unique_ptr<tools::Accelerator>> accelerator = tools::Accelerator::open(flags.device);
  if (!accelerator)
    return accelerator.status();
  Result<tools::EngineHandle> guessing = openEngine(flags, NSA_MISS_DEFAULT);
  if (!guessing)
    return guessing.status();
  Result<tools::EngineHandle> tuning = openEngine(flags, NSA_MISS_TUNE);
  if (!tuning)
    return tuning.status();
  Result<nlohmann::json> machine = machineFacts(guessing->get());
  if (!machine)
    return machine.status();
  const FmaPeak peak = measureFmaPeak(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  std::printf("%s, FMA peak %.0f GFLOP/s on %d threads\n", processorName().c_str(), peak.gflops, peak.threads);

  BenchReport report(*machine, peak);
  for (BenchCase benchCase : benchCases((*accelerator)->isCuda(), flags.quick)) {
    for (const std::string &name : flags.dtypes) {
      Result<DType> dtype = parseDType(name);
      if (!dtype)
        return dtype.status();
      benchCase.spec.dtype = *dtype;
      const tools::AttentionInputs inputs = tools::drawAttentionInputs(benchCase.spec, benchCase.maxima, 1);
      for (const bool tuned : {false, true}) {
        if (tuned && flags.noTune)
          continue;
        Result<BenchResult> result = measure((tuned ? *tuning : *guessing).get(), **accelerator, inputs, flags.repeats);
        if (!result)
          return result.status();
        const char *kind = tuned ? "tuned" : "default";
        report.add(benchCase, kind, *result);
        std::printf("%-7s %s %-8s T=%-6lld %-8s %9.4f ms (%.4f to %.4f) %8.2f TFLOP/s  %s %s\n",
                    std::string(operatorName(benchCase.spec.op)).c_str(), name.c_str(), benchCase.name.c_str(),
                    static_cast<long long>(benchCase.maxima.seqlenK), kind, result->medianMs, result->fastestMs,
                    result->slowestMs, result->tflops, result->templateName.c_str(), result->config.c_str());
        std::fflush(stdout);
      }
    }
  }
  return report.write(flags.results);
}

} // namespace
} // namespace nsa::bench

int main(int argc, char **argv) {
  nsa::bench::Flags flags;
  CLI::App app("Measures the attention operators on one device.", "nsa_bench_attention");
  app.add_option("--device", flags.device, "cpu or cuda:N")->capture_default_str()->type_name("DEVICE");
  app.add_option("--results", flags.results, "Folder for attention.json and attention.csv, e.g. bench/results/h200")
      ->required()
      ->type_name("DIR");
  app.add_option("--dtypes", flags.dtypes, "bf16, fp16, fp32; separated by commas")
      ->delimiter(',')
      ->capture_default_str()
      ->type_name("LIST");
  app.add_option("--repeats", flags.repeats, "Samples of each measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--tune-budget", flags.tuneBudget, "Seconds of tuning for each shape")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("SECONDS");
  app.add_option("--compiler", flags.compiler, "libnsa_compiler.so (default: beside libnsa.so)")->type_name("FILE");
  app.add_flag("--no-tune", flags.noTune, "Only the compiler's best guess");
  app.add_flag("--quick", flags.quick, "One small shape");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) {
    return app.exit(request);
  } catch (const CLI::ParseError &error) {
    std::fprintf(stderr, "nsa_bench_attention: %s\n", error.what());
    return 2;
  }
  if (const nsa::Status status = nsa::bench::run(flags); !status.isOk()) {
    std::fprintf(stderr, "nsa_bench_attention: %s\n", status.toString().c_str());
    return 1;
  }
  return 0;
}
