// A process of its own for the tests of warm starts: `nsa_warm_probe DEVICE DATABASE default|fail [COMPILER]` runs
// a small job and prints as JSON where its kernel came from, whether the result is right, and which libraries
// this process has mapped.
#include "tools/support/operator_check.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace nsa::tools {
namespace {

bool isMapped(const std::string &library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(library) != std::string::npos)
      return true;
  return false;
}

Status probe(const std::string &device, const EngineSettings &settings) {
  Spec spec;
  spec.op = Operator::kWindow;
  spec.dtype = DType::kBf16;
  spec.queryHeads = 8;
  spec.kvHeads = 2;
  spec.qkDim = spec.vDim = 64;
  spec.window = 70;
  const OperatorInputs inputs = drawInputs(spec, {.q = {200, 200}, .k = {200, 200}}, 5);
  Result<EngineHandle> engine = createEngine(settings);
  if (!engine)
    return engine.status();
  Result<std::unique_ptr<Accelerator>> accelerator = Accelerator::open(device);
  if (!accelerator)
    return accelerator.status();
  Result<PlanHandle> plan = createPlan(engine->get(), inputs.spec, inputs.maxima, (*accelerator)->stream());
  if (!plan)
    return plan.status();
  Result<RunResult> result = runOnce(**accelerator, plan->get(), inputs, requiredOutputs(spec.op));
  if (!result)
    return result.status();
  const bool right = checkOperator(inputs, result->outputs).within();
  const nlohmann::json report = {{"source", describePlan(plan->get()).value("source", "")},
                                 {"right", right},
                                 {"compiler_mapped", isMapped("libnsa_compiler")},
                                 {"nvrtc_mapped", isMapped("libnvrtc")},
                                 {"llvm_mapped", isMapped("libLLVM")}};
  std::printf("%s\n", report.dump().c_str());
  return Status::ok();
}

} // namespace
} // namespace nsa::tools

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: nsa_warm_probe DEVICE DATABASE default|fail [COMPILER]\n");
    return 2;
  }
  nsa::tools::EngineSettings settings;
  settings.device = argv[1];
  settings.cachePath = argv[2];
  settings.missPolicy = std::string(argv[3]) == "fail" ? NSA_MISS_FAIL : NSA_MISS_DEFAULT;
  if (argc > 4)
    settings.compilerPath = argv[4];
  if (const nsa::Status status = nsa::tools::probe(argv[1], settings); !status.isOk()) {
    std::fprintf(stderr, "%s\n", status.toString().c_str());
    return 1;
  }
  return 0;
}
