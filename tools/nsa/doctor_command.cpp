// `nsa doctor`: what of this machine the runtime can use, one line each with what to do about the rest. Lines are
// earned: the compiler is opened, NVRTC compiles a kernel, and the CPU's answer is compared with the reference.
#include "tools/nsa/command.h"
#include "tools/nsa/pairing.h"

#include "cache/kernel_store.h"
#include "runtime/base/compiler_revision.h"
#include "runtime/cuda/device_info.h"
#include "runtime/cuda/driver.h"
#include "runtime/engine/compiler_library.h"
#include "runtime/engine/options.h"
#include "tools/support/operator_check.h"

#include <cstdio>
#include <memory>

namespace nsa::tools {
namespace {

struct DoctorFlags {
  EngineFlags engine;
  bool json = false;
};

struct Finding {
  std::string subject;
  bool ok = false;
  std::string text;
  std::string advice; // what to do when not ok
};

Finding broken(std::string subject, const Status &status) {
  ErrorInfo error = status.error();
  std::string advice = std::exchange(error.hint, "");
  return {std::move(subject), false, error.toString(), std::move(advice)};
}

// Small, and in the shape of a real job: grouped heads, a window shorter than the sequence.
OperatorInputs sampleInputs() {
  Spec spec;
  spec.op = Operator::kWindow;
  spec.dtype = DType::kBf16;
  spec.queryHeads = 4;
  spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 64;
  spec.window = 50;
  return drawInputs(spec, {.q = {100}, .k = {100}}, 1);
}

// Compiles and runs the sample on a device without touching the user's cache.
Result<std::string> tryDevice(const std::string &device, const nsa::EngineOptions &options) {
  EngineSettings settings;
  settings.device = device;
  settings.cachePath = ":memory:";
  settings.missPolicy = NSA_MISS_DEFAULT;
  settings.compilerPath = options.compilerPath;
  Result<EngineHandle> engine = createEngine(settings);
  if (!engine)
    return engine.status();
  Result<std::unique_ptr<Accelerator>> accelerator = Accelerator::open(device);
  if (!accelerator)
    return accelerator.status();
  const OperatorInputs inputs = sampleInputs();
  Result<PlanHandle> plan = createPlan(engine->get(), inputs.spec, inputs.maxima, (*accelerator)->stream());
  if (!plan)
    return plan.status();
  Result<RunResult> result = runOnce(**accelerator, plan->get(), inputs, allOutputs(inputs.spec.op));
  if (!result)
    return result.status();
  const OperatorCheck check = checkOperator(inputs, result->outputs);
  if (!check.within())
    return Status::error(ErrorCode::kInternal, "the answer is wrong: " + check.toString(),
                         "please report it with the output of `nsa doctor --json`");
  char text[96];
  std::snprintf(text, sizeof text, "compiles and answers within the contract (relative RMS %.2g)",
                check.outputs.front().error->relativeRms);
  return std::string(text);
}

Finding checkDevice(const std::string &subject, const std::string &device, const nsa::EngineOptions &options) {
  Result<std::string> result = tryDevice(device, options);
  return result ? Finding{subject, true, *result, ""} : broken(subject, result.status());
}

Finding checkCompiler(const nsa::EngineOptions &options, std::shared_ptr<const CompilerLibrary> &compiler) {
  Result<std::shared_ptr<const CompilerLibrary>> opened =
      CompilerLibrary::open(compilerLibraryPath(options.compilerPath));
  if (!opened)
    return broken("compiler", opened.status());
  compiler = *opened;
  return {"compiler", true, compiler->path() + " (" + compiler->sourceId() + ")", ""};
}

Finding checkNvrtc(const CompilerLibrary &compiler, const nsa::EngineOptions &options, const std::string &target,
                   int driverVersion, std::string &found) {
  const OperatorInputs inputs = sampleInputs();
  const Problem problem = Problem::make(inputs.spec, inputs.maxima);
  CompileRequest request;
  request.target = target;
  request.op = problem.op;
  request.fixed = problem.fixed;
  request.templateDir = options.templateDir;
  request.nvrtcPath = options.nvrtcPath;
  request.driverVersion = driverVersion;
  Result<CompiledKernel> kernel = compiler.compile(request);
  if (!kernel)
    return broken("nvrtc", kernel.status());
  const auto version = kernel->manifest.evidence.find("nvrtc");
  found = version == kernel->manifest.evidence.end() ? "" : version->second;
  return {"nvrtc", true, "version " + (found.empty() ? "unknown" : found) + ", compiles for " + target, ""};
}

// The cache is looked at through an engine, as a launch would.
Finding checkCache(const DoctorFlags &flags) {
  EngineSettings settings = flags.engine.settings;
  settings.device = "cpu";
  settings.log = [](void *, nsa_log_level, const char *, const char *) {}; // the finding says it
  settings.logLevel = NSA_LOG_OFF;
  Result<EngineHandle> engine = createEngine(settings);
  if (!engine)
    return broken("cache", engine.status());
  Result<nlohmann::json> description = describeEngine(engine->get());
  if (!description)
    return broken("cache", description.status());
  const nlohmann::json &cache = (*description)["cache"];
  const std::string path = cache.value("path", ""), trouble = cache.value("trouble", "");
  if (!trouble.empty())
    return {"cache", false, path + ": " + trouble,
            "kernels are made anew in each process; choose another file with --cache or NSA_CACHE_DIR"};
  return {"cache", true, path, ""};
}

// The GPU kernels of the cache, which is not changed.
std::vector<PairingFacts::Stored> storedKernels(const std::string &path) {
  std::string warning;
  Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = path, .readOnly = true}, warning);
  if (!store)
    return {};
  std::vector<PairingFacts::Stored> stored;
  Result<std::vector<KernelSummary>> kernels = (*store)->listKernels();
  for (size_t i = 0; kernels && i < kernels->size(); ++i) {
    const KernelSummary &summary = (*kernels)[i];
    if (!summary.target.starts_with("sm_"))
      continue;
    stored.push_back({summary.target, ""});
    Result<std::optional<StoredKernel>> kernel = (*store)->findKernel(summary.content);
    if (!kernel || !*kernel)
      continue;
    if (Result<Manifest> manifest = Manifest::parse((*kernel)->manifest))
      if (const auto version = manifest->evidence.find("nvrtc"); version != manifest->evidence.end())
        stored.back().nvrtcVersion = version->second;
  }
  return stored;
}

Status examine(const DoctorFlags &flags) {
  nsa::EngineOptions options;
  options.cachePath = flags.engine.settings.cachePath;
  NSA_RETURN_IF_ERROR(options.resolve(nsa::EngineOptions::processEnvironment()));
  std::vector<Finding> findings;
  findings.push_back({"version", true, std::string(nsa_version()) + " (" + nsa_source_id() + ")", ""});

  std::string target = "sm_80"; // something to compile for where there is no GPU
  int driverVersion = 0;
  bool gpu = false;
  PairingFacts facts;
  if (Result<const cuda::Driver *> driver = cuda::Driver::get(); !driver) {
    findings.push_back(broken("driver", driver.status()));
  } else {
    driverVersion = (*driver)->version();
    findings.push_back({"driver", true, "CUDA " + cuda::versionText(driverVersion), ""});
    if (Result<cuda::DeviceInfo> info = cuda::readDeviceInfo(**driver, 0); !info) {
      findings.push_back(broken("gpu", info.status()));
    } else {
      target = facts.target = info->target;
      gpu = true;
      findings.push_back({"gpu", true, info->name + ", " + target, ""});
    }
  }
  std::shared_ptr<const CompilerLibrary> compiler;
  findings.push_back(checkCompiler(options, compiler));
  if (compiler)
    findings.push_back(checkNvrtc(*compiler, options, target, driverVersion, facts.nvrtcVersion));
  findings.push_back(checkCache(flags));
  facts.driverVersion = driverVersion;
  facts.libraryRevision = compilerRevision();
  facts.compilerRevision = compiler ? compiler->sourceId() : "";
  facts.stored = storedKernels(options.cachePath);
  const std::vector<PairingFault> faults = findPairingFaults(facts);
  for (const PairingFault &fault : faults)
    findings.push_back({"versions", false, fault.text, fault.advice});
  if (faults.empty())
    findings.push_back({"versions", true, "driver, NVRTC, libraries and stored kernels go together", ""});
  findings.push_back(checkDevice("cpu run", "cpu", options));
  const bool cpuWorks = findings.back().ok;
  bool cudaWorks = false;
  if (gpu) {
    findings.push_back(checkDevice("gpu run", "cuda:0", options));
    cudaWorks = findings.back().ok;
  }

  if (flags.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Finding &finding : findings)
      list.push_back(
          {{"subject", finding.subject}, {"ok", finding.ok}, {"text", finding.text}, {"advice", finding.advice}});
    printJson({{"cpu", cpuWorks}, {"cuda", cudaWorks}, {"versions", faults.empty()}, {"findings", list}});
  } else {
    for (const Finding &finding : findings)
      std::printf("%-8s  %-4s  %s%s%s\n", finding.subject.c_str(), finding.ok ? "ok" : "-", finding.text.c_str(),
                  finding.advice.empty() ? "" : "; to do: ", finding.advice.c_str());
  }
  if (!cpuWorks)
    return Status::error(ErrorCode::kUnavailable, "the CPU device does not work", "the line `cpu run` says why");
  if (!faults.empty())
    return Status::error(ErrorCode::kUnavailable, "versions that do not go together", "the lines `versions` say which");
  return Status::ok();
}

} // namespace

void addDoctorCommand(CLI::App &app, Action &action) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App *command = app.add_subcommand(
      "doctor",
      "Check driver, GPU, compiler library, NVRTC, cache, whether their versions go together, and run a small "
      "kernel");
  flags->engine.addCache(*command);
  command->add_flag("--json", flags->json, "Print a JSON report");
  command->callback([flags, &action] { action = [flags] { return examine(*flags); }; });
}

} // namespace nsa::tools
