// `nsa doctor`: what of this machine the runtime can use, one line each with what to do about the rest. Lines are
// earned: the compiler is opened, NVRTC compiles a kernel, and the CPU's answer is compared with the reference.
#include "tools/nsa/cache/cache_verbs.h"
#include "tools/nsa/pairing.h"

#include "cache/cache_file.h"
#include "cache/pack.h"
#include "runtime/base/compiler_revision.h"
#include "runtime/cuda/device_info.h"
#include "runtime/cuda/driver.h"
#include "runtime/engine/choices/routes.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/options/cache_settings.h"
#include "runtime/engine/options/compile_request.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <unistd.h>

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
  std::string advice = {}; // what to do when not ok
};

Finding broken(std::string subject, const Status &status) {
  ErrorInfo error = status.error();
  std::string advice = std::exchange(error.hint, "");
  return {std::move(subject), false, error.toString(), std::move(advice)};
}

// Small, and in the shape of a real job: grouped heads, a window shorter than the sequence.
OperatorInputs sampleInputs() {
  Spec spec;
  spec.dtype = DType::kBf16;
  spec.queryHeads = 4;
  spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 64;
  spec.window = 50;
  return drawInputs(spec, {.q = {100}, .k = {100}}, 1);
}

// Compiles and runs the sample on a device: what the environment says of caches, steps and templates does not count.
Result<std::string> tryDevice(const std::string &device, const nsa::EngineOptions &options) {
  EngineSettings settings = withNothingStored({});
  settings.device = device;
  settings.missPolicy = NSA_MISS_DEFAULT;
  settings.compilerPath = options.compilerPath;
  settings.forceVariant = kTiledTemplate;
  NSA_ASSIGN_OR_RETURN(EngineHandle engine, createEngine(settings));
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<Accelerator> accelerator, Accelerator::open(device));
  const OperatorInputs inputs = sampleInputs();
  NSA_ASSIGN_OR_RETURN(PlanHandle plan, createPlan(engine.get(), inputs.spec, inputs.maxima, accelerator->stream()));
  NSA_ASSIGN_OR_RETURN(RunResult result, runOnce(*accelerator, plan.get(), inputs, allOutputs(inputs.spec.op)));
  const OperatorCheck check = checkOperator(inputs, result.outputs);
  if (!check.within())
    return Status::error(ErrorCode::kInternal, "the answer is wrong: " + check.toString(),
                         "please report it with the output of `nsa doctor --json`");
  return "compiles and answers within the contract (relative RMS " +
         formatNumber("%.2g)", check.outputs.front().error->relativeRms);
}

Finding checkDevice(const std::string &subject, const std::string &device, const nsa::EngineOptions &options) {
  Result<std::string> result = tryDevice(device, options);
  return result ? Finding{subject, true, *result} : broken(subject, result.status());
}

Finding checkCompiler(const nsa::EngineOptions &options, std::shared_ptr<const CompilerLibrary> &compiler) {
  Result<std::shared_ptr<const CompilerLibrary>> opened = CompilerLibrary::open(options.compilerPath);
  if (!opened)
    return broken("compiler", opened.status());
  compiler = *opened;
  return {"compiler", true, compiler->path() + " (" + compiler->sourceId() + ")"};
}

Finding checkNvrtc(const CompilerLibrary &compiler, const nsa::EngineOptions &options, const std::string &target,
                   int driverVersion, std::string &found) {
  const OperatorInputs inputs = sampleInputs();
  CompileRequest request = requestOf(ProblemKey::of(Problem::make(inputs.spec, inputs.maxima)), options, target);
  request.driverVersion = driverVersion;
  Result<CompiledKernel> kernel = compiler.compile(request);
  if (!kernel)
    return broken("nvrtc", kernel.status());
  const auto version = kernel->manifest.evidence.find("nvrtc");
  found = version == kernel->manifest.evidence.end() ? "" : version->second;
  return {"nvrtc", true, "version " + (found.empty() ? "unknown" : found) + ", compiles for " + target};
}

constexpr const char *kEngineSubject = "engine";

// The cache is looked at through an engine, as a launch would. One that does not open is a finding of its own.
Finding checkCache(const DoctorFlags &flags) {
  EngineSettings settings = flags.engine.settings;
  settings.device = "cpu";
  settings.log = [](void *, nsa_log_level, const char *, const char *) {}; // the finding says it
  settings.logLevel = NSA_LOG_OFF;
  Result<EngineHandle> engine = createEngine(settings);
  if (!engine)
    return broken(kEngineSubject, engine.status());
  Result<nlohmann::json> description = describeEngine(engine->get());
  if (!description)
    return broken("cache", description.status());
  const nlohmann::json &cache = (*description)["cache"];
  const std::string path = cache.value("path", ""), trouble = cache.value("trouble", "");
  if (!trouble.empty())
    return {"cache", false, path + ": " + trouble,
            "kernels are made anew in each process; choose another file with --cache or NSA_CACHE_DIR"};
  if (path != ":memory:" && !std::filesystem::exists(path))
    return {"cache", true, path + " (is made when the first kernel is stored)"};
  return {"cache", true, path};
}

// The GPU kernels of a database or pack, which is not changed.
Status addStoredKernels(const std::string &path, std::vector<PairingFacts::Stored> &stored, size_t &kernels) {
  NSA_ASSIGN_OR_RETURN(CacheFile file, CacheFile::open(path, CacheFile::Check::kNothing));
  NSA_ASSIGN_OR_RETURN(std::vector<KernelSummary> summaries, file.kernels());
  kernels += summaries.size();
  for (const KernelSummary &summary : summaries) {
    if (!summary.target.starts_with("sm_"))
      continue;
    stored.push_back({summary.target, ""});
    Result<std::optional<StoredKernel>> kernel = file.kernel(summary.content);
    if (!kernel || !*kernel)
      continue;
    if (Result<Manifest> manifest = Manifest::parse((*kernel)->manifest))
      if (const auto version = manifest->evidence.find("nvrtc"); version != manifest->evidence.end())
        stored.back().nvrtcVersion = version->second;
  }
  return Status::ok();
}

// What an engine would find beside the compiler. What is wrong with the database is `checkCache`'s to say.
struct StoredFindings {
  std::vector<Finding> keys, packs;
  std::vector<PairingFacts::Stored> gpu;
  size_t kernels = 0; // for any target
};

Result<StoredFindings> lookAtStored(const nsa::EngineOptions &options) {
  std::vector<std::string> warnings;
  NSA_ASSIGN_OR_RETURN(CacheSettings settings, settingsOf(options, warnings));
  StoredFindings found;
  (void)addStoredKernels(settings.path, found.gpu, found.kernels);
  if (!options.pinPath.empty())
    (void)addStoredKernels(options.pinPath, found.gpu, found.kernels); // or an engine says why it cannot be used
  for (const std::string &warning : warnings)
    found.keys.push_back({"keys", false, warning, "name files that can be read; without it the other keys count"});
  for (const std::string &path : settings.packs) {
    const Result<std::unique_ptr<Pack>> pack = Pack::open(path, settings.signatures);
    Status status = pack.status();
    const size_t before = found.kernels;
    if (status.isOk())
      status = addStoredKernels(path, found.gpu, found.kernels);
    found.packs.push_back(
        status.isOk() ? Finding{"pack", true,
                                path + ", " + countText(static_cast<int64_t>(found.kernels - before), "kernel") +
                                    ((*pack)->warning().empty() ? "" : "; none of the trusted keys has signed it"),
                                ""}
                      : broken("pack", status));
  }
  return found;
}

Status examine(const DoctorFlags &flags) {
  nsa::EngineOptions options;
  options.cachePath = flags.engine.settings.cachePath;
  NSA_RETURN_IF_ERROR(options.resolve(nsa::EngineOptions::processEnvironment()));
  std::vector<Finding> findings;
  findings.push_back({"version", true, std::string(nsa_version()) + " (" + nsa_source_id() + ")"});

  std::string target = "sm_80"; // something to compile for where there is no GPU
  int driverVersion = 0;
  bool gpu = false;
  PairingFacts facts;
  if (Result<const cuda::Driver *> driver = cuda::Driver::get(); !driver) {
    findings.push_back(broken("driver", driver.status()));
  } else {
    driverVersion = (*driver)->version();
    findings.push_back({"driver", true, "CUDA " + cuda::versionText(driverVersion)});
    if (Result<cuda::DeviceInfo> info = cuda::readDeviceInfo(**driver, 0); !info) {
      findings.push_back(broken("gpu", info.status()));
    } else {
      target = facts.target = info->target;
      gpu = true;
      findings.push_back({"gpu", true, info->name + ", " + target});
    }
  }
  std::shared_ptr<const CompilerLibrary> compiler;
  findings.push_back(checkCompiler(options, compiler));
  if (compiler)
    findings.push_back(checkNvrtc(*compiler, options, target, driverVersion, facts.nvrtcVersion));
  NSA_ASSIGN_OR_RETURN(StoredFindings stored, lookAtStored(options));
  findings.push_back(checkCache(flags));
  findings.insert(findings.end(), stored.keys.begin(), stored.keys.end());
  findings.insert(findings.end(), stored.packs.begin(), stored.packs.end());
  facts.driverVersion = driverVersion;
  facts.libraryRevision = compilerRevision();
  facts.compilerRevision = compiler ? compiler->sourceId() : "";
  facts.stored = stored.gpu;
  const std::vector<PairingFault> faults = findPairingFaults(facts);
  for (const PairingFault &fault : faults)
    findings.push_back({"versions", false, fault.text, fault.advice});
  if (faults.empty())
    findings.push_back({"versions", true, "driver, NVRTC, libraries and stored kernels go together"});
  // Without a compiler there is nothing to try, as where kernels are only taken from files.
  const bool tries = compiler || access(CompilerLibrary::resolvePath(options.compilerPath).c_str(), F_OK) == 0;
  nlohmann::json cpuWorks, cudaWorks = gpu ? nlohmann::json() : nlohmann::json(false); // null: was not tried
  if (tries) {
    findings.push_back(checkDevice("cpu run", "cpu", options));
    cpuWorks = findings.back().ok;
  } else {
    findings.push_back({"cpu run", stored.kernels > 0, "not tried: no compiler"});
  }
  if (tries && gpu) {
    findings.push_back(checkDevice("gpu run", "cuda:0", options));
    cudaWorks = findings.back().ok;
  }
  const bool packsServe = std::ranges::all_of(stored.packs, &Finding::ok);

  if (flags.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Finding &finding : findings)
      list.push_back(
          {{"subject", finding.subject}, {"ok", finding.ok}, {"text", finding.text}, {"advice", finding.advice}});
    printJson({{"cpu", cpuWorks},
               {"cuda", cudaWorks},
               {"versions", faults.empty()},
               {"packs", packsServe},
               {"findings", list}});
  } else {
    for (const Finding &finding : findings)
      printText("%-8s  %-4s  %s%s%s\n", finding.subject.c_str(), finding.ok ? "ok" : "-", finding.text.c_str(),
                finding.advice.empty() ? "" : "; to do: ", finding.advice.c_str());
  }
  if (tries && !cpuWorks.get<bool>())
    return Status::error(ErrorCode::kUnavailable, "the CPU device does not work", "the line `cpu run` says why");
  if (!tries && stored.kernels == 0)
    return Status::error(ErrorCode::kUnavailable, "there is neither a compiler nor a stored kernel, so nothing can run",
                         "the line `compiler` says where one was looked for");
  if (std::ranges::any_of(findings, [](const Finding &finding) { return finding.subject == kEngineSubject; }))
    return Status::error(ErrorCode::kUnavailable, "no engine can be opened here", "the line `engine` says why");
  if (!packsServe)
    return Status::error(ErrorCode::kUnavailable, "packs that are not used", "the lines `pack` say why");
  if (!faults.empty())
    return Status::error(ErrorCode::kUnavailable, "versions that do not go together", "the lines `versions` say which");
  return Status::ok();
}

} // namespace

void addDoctorCommand(CLI::App &app, Action &action) {
  auto [verb, flags] = addVerb<DoctorFlags>(
      app, action, "doctor", "Check driver, GPU, compiler, NVRTC and cache, and run a small kernel", examine);
  verb.footer("It also says whether the versions of all these go together.");
  flags.engine.addCache(verb);
  addJsonFlag(verb, flags.json);
}

} // namespace nsa::tools
