#include "bench/measure/bench_program.h"
#include "tools/support/number_option.h"

#include <cstdio>
#include <exception>

namespace nsa::bench {
namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

} // namespace

tools::EngineSettings CommonFlags::engineSettings(nsa_miss_policy policy, const std::string &cache) const {
  tools::EngineSettings settings;
  settings.device = device;
  settings.cachePath = cache;
  settings.missPolicy = policy;
  settings.compilerPath = compiler;
  return settings;
}

tools::EngineSettings CommonFlags::engineSettings(nsa_miss_policy policy) const {
  return tools::withNothingStored(engineSettings(policy, ""));
}

BenchProgram::BenchProgram(const std::string &name, const std::string &purpose, CommonFlags &flags,
                           const std::string &quick)
    : app(purpose, "nsa_bench_" + name), flags(flags) {
  app.add_option("--results", flags.results,
                 "Folder for " + name + ".json and " + name + ".csv, e.g. bench/results/h200")
      ->required()
      ->type_name("DIR");
  app.add_option("--compiler", flags.compiler, "libnsa_compiler.so (default: beside libnsa.so)")->type_name("FILE");
  app.add_flag("--quick", flags.quick, quick);
}

void BenchProgram::addDevice() {
  app.add_option("--device", flags.device, "cpu or cuda:N")->capture_default_str()->type_name("DEVICE");
}

void BenchProgram::addCount(const std::string &option, int &count, const std::string &meaning, int least, int most) {
  app.add_option(option, count, meaning)->check(tools::wholeWithin(least, most))->capture_default_str()->type_name("N");
}

void BenchProgram::addKernelBudget(double &seconds) {
  app.add_option("--kernel-budget", seconds, "Seconds that the tuning of each kernel may take")
      ->check(tools::secondsAbove0())
      ->capture_default_str()
      ->type_name("SECONDS");
}

void BenchProgram::addOperators(std::vector<std::string> &ops, const std::vector<std::string> &others) {
  std::vector<std::string> known = ops;
  known.insert(known.end(), others.begin(), others.end());
  const std::string more = others.empty() ? "" : "; also " + CLI::detail::join(others, ", ");
  app.add_option("--ops", ops, "Only these: " + CLI::detail::join(ops, ", ") + more)
      ->delimiter(',')
      ->check(CLI::IsMember(known))
      ->type_name("LIST");
}

int BenchProgram::run(int argc, char **argv, const std::function<Status()> &measure) {
  const std::string name = app.get_name();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) {
    return app.exit(request); // --help
  } catch (const CLI::ParseError &error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    return kUsage;
  }
  try {
    if (const Status status = measure(); !status.isOk()) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), status.toString().c_str());
      return kFailure;
    }
  } catch (const std::exception &exception) { // no memory for the tensors
    std::fprintf(stderr, "%s: %s\n", name.c_str(), exception.what());
    return kFailure;
  }
  return 0;
}

} // namespace nsa::bench
