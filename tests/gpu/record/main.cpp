// nsa_gpu_record write FOLDER FILE SECONDS [TOOL VERSION]: the record of what run-gpu-tests left in FOLDER, into FILE;
// fails when the run is no evidence (gpu_record.h).
// nsa_gpu_record skips REPORT: prints the tests that a report of GoogleTest calls skipped, and fails when one of them
// may not be. nsa_gpu_record results FOLDER: prints the folder in FOLDER with results of this GPU; exit status 77 when
// there is none. nsa_gpu_record compare RECORDED FRESH: fails when a kernel takes more than twice the part of its
// peer's time that the bench results of folder RECORDED have.
#include "bench/measure/machine_facts.h"
#include "tests/gpu/record/gpu_record.h"
#include "tools/support/accelerator.h"
#include "tools/support/operator_job.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>

using namespace nsa;
using namespace nsa::test;

namespace {

constexpr const char *kDevice = "cuda:0";
constexpr int kSkipped = 77;

int fail(const std::string &text) {
  std::fprintf(stderr, "nsa_gpu_record: %s\n", text.c_str());
  return 1;
}

std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

// With the version of NVRTC, which a kernel tells that is compiled for it.
Result<Json> machineOf(const std::string &device) {
  Result<std::unique_ptr<tools::Accelerator>> accelerator = tools::Accelerator::open(device);
  if (!accelerator)
    return accelerator.status();
  tools::EngineSettings settings;
  settings.device = device;
  Result<tools::EngineHandle> engine = tools::createEngine(tools::withNothingStored(settings));
  if (!engine)
    return engine.status();
  Result<nlohmann::json> facts = bench::machineFacts(engine->get());
  if (!facts)
    return facts.status();
  Spec spec;
  spec.op = Operator::kDense;
  spec.queryHeads = spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 64;
  Result<tools::PlanHandle> plan =
      tools::createPlan(engine->get(), spec, tools::layOut(spec, {{1}, {1}}).maxima, (*accelerator)->stream());
  if (!plan)
    return plan.status();
  Json machine = *facts;
  const nlohmann::json launch = tools::describePlan(plan->get())["launches"].back();
  machine["nvrtc"] = launch["evidence"].value("nvrtc", "");
  machine["driver"] = machine["device"].value("driver", ""); // the newest CUDA version that it runs
  std::ifstream module("/proc/driver/nvidia/version");
  if (std::string line; std::getline(module, line))
    machine["kernel_module"] = line;
  return machine;
}

int write(std::span<char *> arguments) {
  Result<Json> machine = machineOf(kDevice);
  if (!machine)
    return fail(machine.status().toString());
  RunFacts facts{.machine = std::move(*machine),
                 .seed = environment("NSA_TEST_SEED"),
                 .maxTokens = environment("NSA_TEST_MAX_TOKENS"),
                 .sanitizer = "",
                 .version = "",
                 .seconds = std::strtod(arguments[2], nullptr)};
  if (arguments.size() == 5) {
    facts.sanitizer = arguments[3];
    facts.version = arguments[4];
  }
  const Result<Json> record = makeRecord(arguments[0], facts);
  if (!record)
    return fail(record.status().toString());
  std::ofstream file(arguments[1], std::ios::binary);
  file << record->dump(1) << '\n';
  file.close();
  if (!file)
    return fail(std::string(arguments[1]) + " cannot be written");
  const std::vector<std::string> faults = faultsOf(*record);
  for (const std::string &fault : faults)
    fail(std::string(arguments[1]) + ": " + fault);
  return faults.empty() ? 0 : 1;
}

int skips(const char *report) {
  const Result<SkippedTests> tests = skippedTests(report);
  if (!tests)
    return fail(tests.status().toString());
  for (const std::string &test : tests->allowed)
    std::printf("skipped: %s\n", test.c_str());
  for (const std::string &test : tests->refused)
    fail("must not be skipped: " + test);
  return tests->refused.empty() ? 0 : 1;
}

int results(const char *root) {
  tools::EngineSettings settings;
  settings.device = kDevice;
  Result<tools::EngineHandle> engine = tools::createEngine(tools::withNothingStored(settings));
  if (!engine)
    return fail(engine.status().toString());
  const Result<nlohmann::json> facts = bench::machineFacts(engine->get());
  if (!facts)
    return fail(facts.status().toString());
  const std::string name = (*facts)["device"].value("name", ""), folder = resultsOf(root, name);
  if (folder.empty()) {
    std::fprintf(stderr, "no results of %s are in %s\n", name.c_str(), root);
    return kSkipped;
  }
  std::printf("%s\n", folder.c_str());
  return 0;
}

int compare(std::span<char *> arguments) {
  std::vector<std::string> lines;
  const Result<std::vector<std::string>> slower = slowerKernels(arguments[0], arguments[1], lines);
  for (const std::string &line : lines)
    std::printf("%s\n", line.c_str());
  if (!slower)
    return fail(slower.status().toString());
  for (const std::string &line : *slower)
    fail("less than half as fast as recorded: " + line);
  return slower->empty() ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  const std::span<char *> arguments(argv + 1, static_cast<size_t>(argc - 1));
  const std::string verb = arguments.empty() ? "" : arguments[0];
  if (verb == "write" && (arguments.size() == 4 || arguments.size() == 6))
    return write(arguments.subspan(1));
  if (verb == "skips" && arguments.size() == 2)
    return skips(arguments[1]);
  if (verb == "results" && arguments.size() == 2)
    return results(arguments[1]);
  if (verb == "compare" && arguments.size() == 3)
    return compare(arguments.subspan(1));
  std::fprintf(stderr,
               "usage: nsa_gpu_record write FOLDER FILE SECONDS [TOOL VERSION] | skips REPORT | results FOLDER | "
               "compare RECORDED FRESH\n");
  return 2;
}
