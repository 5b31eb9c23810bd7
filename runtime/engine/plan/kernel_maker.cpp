#include "runtime/engine/plan/kernel_maker.h"

#include "runtime/engine/choices/provenance.h"
#include "runtime/engine/compile/default_kernel.h"
#include "runtime/engine/compile/source_dump.h"
#include "runtime/engine/compile/template_folder.h"
#include "runtime/engine/options/compile_request.h"
#include "runtime/engine/report/describe.h"
#include "runtime/engine/report/profiler_range.h"
#include "runtime/engine/report/stopwatch.h"
#include "runtime/engine/report/timed_shape.h"
#include "runtime/engine/tune/tuning_session.h"

#include <utility>

namespace nsa {

namespace {
constexpr const char *kExhaustively = " search=exhaustive"; // in the provenance of such a winner
} // namespace

Result<std::shared_ptr<const CompilerLibrary>> KernelMaker::compiler() {
  std::lock_guard lock(compilerMutex);
  if (compilerLibrary)
    return compilerLibrary;
  Result<std::shared_ptr<const CompilerLibrary>> opened = CompilerLibrary::open(options.compilerPath);
  if (opened)
    compilerLibrary = *opened;
  return opened;
}

std::string KernelMaker::compilerRevision() {
  const Result<std::shared_ptr<const CompilerLibrary>> library = compiler();
  return library ? (*library)->sourceId() : "";
}

std::string KernelMaker::provenance() const {
  std::string text = provenanceOf(compilerLibrary->sourceId());
  if (device.driverVersion())
    text += " driver=" + std::to_string(device.driverVersion());
  return text;
}

CompileRequest KernelMaker::compileRequest(const KernelRequest &request) const {
  CompileRequest by = requestOf(request.task.problem, options, device.target());
  by.templateName = request.task.hasVariants ? options.forcedTemplate() : "";
  by.cpuFeatures = device.cpuFeatures();
  by.driverVersion = device.driverVersion();
  by.program = request.task.program;
  return by;
}

Result<std::vector<Candidate>> KernelMaker::candidates(const KernelRequest &request) {
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const CompilerLibrary> library, compiler());
  return library->list(compileRequest(request));
}

Status KernelMaker::adopt(const KernelRequest &request, std::string content, SharedManifest manifest,
                          std::span<const std::byte> binary, KernelCore &core) {
  Stopwatch watch;
  std::shared_ptr<const LoadedKernel> kernel;
  {
    std::lock_guard lock(kernelMutex);
    if (auto found = kernels.find(content); found != kernels.end())
      kernel = found->second;
  }
  if (!kernel) {
    NSA_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedKernel> loaded,
                         LoadedKernel::load(device, content, std::move(manifest), binary, request.task.names()));
    Counters::raise(counters.kernelsLoaded);
    std::lock_guard lock(kernelMutex);
    kernel = kernels.emplace(std::move(content), std::move(loaded)).first->second;
  }
  int32_t grid[3];
  NSA_RETURN_IF_ERROR(kernel->grid(request.task.sizes(), grid));
  core.kernel = std::move(kernel);
  core.times.loadMs += watch.milliseconds();
  return Status::ok();
}

Status KernelMaker::adoptCompiled(const KernelRequest &request, const CompileRequest &by, const CompiledKernel &kernel,
                                  KernelCore &core) {
  Counters::raise(counters.kernelsCompiled);
  core.times.renderMs += kernel.renderMs;
  core.times.compileMs += kernel.compileMs;
  core.source = PlanSource::kCompiled;
  tell(by, kernel);
  return adopt(request, kernel.content, std::make_shared<const Manifest>(kernel.manifest), kernel.binary, core);
}

void KernelMaker::tell(const CompileRequest &by, const CompiledKernel &kernel) {
  for (std::string_view rest = kernel.warnings; !rest.empty();) {
    const size_t end = rest.find('\n');
    logger.log(LogLevel::kWarning, "program", rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  if (options.dumpDir.empty())
    return;
  if (Status status = dumpSources(*compilerLibrary, by, kernel, options.dumpDir); !status.isOk())
    logger.log(LogLevel::kWarning, "planner", status.toString());
}

Status KernelMaker::load(const KernelRequest &request, const Decision &decision, KernelCore &core) {
  const ChoiceSource::Hit &hit = *decision.stored;
  core.source = sourceOf(hit);
  core.tuned = decision.tuned;
  return adopt(request, hit.kernel.content, decision.manifest, hit.kernel.binary, core);
}

// A stored choice outlives a change of the compiler or of a template, its binary does not.
Status KernelMaker::remake(const KernelRequest &request, const Decision &decision, KernelCore &core) {
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const CompilerLibrary> library, compiler());
  CompileRequest by = compileRequest(request);
  by.templateName = decision.manifest->templateName;
  by.config = decision.manifest->config;
  NSA_ASSIGN_OR_RETURN(CompiledKernel kernel, library->compile(by));
  NSA_RETURN_IF_ERROR(adoptCompiled(request, by, kernel, core));
  core.tuned = decision.tuned;
  const StoredChoice &choice = decision.stored->choice;
  if (!decision.rung)            // what serves in another's place is no choice for this problem
    (void)store(request, kernel, // the cache has warned
                choice.tuned ? Origin{true, remadeProvenance(choice.provenance, library->sourceId()), choice.evidence}
                             : Origin{.provenance = provenance()});
  return Status::ok();
}

Status KernelMaker::compileDefault(KernelRequest &request, const Decision &decision, KernelCore &core) {
  const ProfilerRange range("nsa compile");
  const auto accept = [&](const CompileRequest &by, CompiledKernel &kernel) -> Status {
    NSA_RETURN_IF_ERROR(adoptCompiled(request, by, kernel, core));
    (void)store(request, kernel, {.provenance = provenance()}); // the cache has warned
    return Status::ok();
  };
  const auto refused = [&](const Candidate &candidate, const Status &why) {
    request.refusedCandidates.push_back(candidate.templateName + " " + candidate.config + ": " + why.toString());
  };
  core.tuned = false;
  Status made = makeDefaultKernel(*compilerLibrary, compileRequest(request), decision.candidates, accept, refused);
  // If none serves, the first error is the caller's.
  for (size_t i = made.isOk() ? 0 : 1; i < request.refusedCandidates.size(); ++i)
    logger.log(LogLevel::kWarning, "planner", "candidate does not serve: " + request.refusedCandidates[i]);
  return made;
}

Status KernelMaker::define(const KernelRequest &request, KernelCore &core) {
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const CompilerLibrary> library, compiler());
  CompileRequest wanted = compileRequest(request);
  wanted.templateName = request.task.definingTemplate;
  NSA_ASSIGN_OR_RETURN(const std::vector<Candidate> listed,
                       listReference(*library, wanted, request.task.referenceChoices));
  return makeDefaultKernel(*library, std::move(wanted), listed, [&](const CompileRequest &by, CompiledKernel &kernel) {
    return adoptCompiled(request, by, kernel, core);
  });
}

Status KernelMaker::tune(const KernelRequest &request, const Tuning &tuning, KernelCore &core) {
  const ProfilerRange range("nsa tune");
  NSA_ASSIGN_OR_RETURN(std::vector<Candidate> listed, request.candidates ? *request.candidates : candidates(request));
  Stopwatch watch;
  EngineOptions limited = options;
  if (tuning.budgetSeconds > 0)
    limited.tuneBudgetSeconds = tuning.budgetSeconds;
  if (tuning.stop)
    limited.compileThreads = 1;
  CompileRequest by = compileRequest(request);
  TuningSession session({device, *compilerLibrary, limited, logger, counters, memo, tuning.serve, tuning.stop},
                        request.task, by, std::move(listed));
  NSA_ASSIGN_OR_RETURN(TuneReport tuned, session.run());
  if (tuning.stop && (*tuning.stop)())
    return Status::error(ErrorCode::kUnavailable, "the engine ends"); // what was not measured to its end is no winner
  const CompiledKernel &winner = session.winner();
  core.times.tuneMs = watch.milliseconds();
  core.times.renderMs = winner.renderMs;
  core.times.compileMs = winner.compileMs;
  by.templateName = winner.manifest.templateName;
  by.config = winner.manifest.config;
  tell(by, winner);
  {
    // The tuner has it loaded already.
    std::lock_guard lock(kernelMutex);
    kernels.emplace(winner.content, session.winnerKernel());
  }
  NSA_RETURN_IF_ERROR(
      adopt(request, winner.content, std::make_shared<const Manifest>(winner.manifest), winner.binary, core));
  // A default that was not measured is stored as untuned, so that it neither passes for a winner nor replaces one.
  core.source = PlanSource::kCompiled;
  core.tuned = tuned.wasMeasured();
  const std::string how = (options.tuneExhaustive ? kExhaustively : "") + cutProvenance(session.cut());
  const Status kept =
      store(request, winner,
            core.tuned ? Origin{true, provenance() + how, session.evidence()} : Origin{.provenance = provenance()});
  if (tuning.report)
    *tuning.report = describeTuning({request.task.key, request.device, session.shapeText(), session.cut(),
                                     session.seed(), core.times.tuneMs, std::move(tuned), options.tuneExhaustive,
                                     kept.isOk() ? "" : kept.toString()});
  return Status::ok();
}

Status KernelMaker::store(const KernelRequest &request, const CompiledKernel &kernel, Origin origin) {
  const StoredKernel stored{kernel.content, kernel.manifestText, kernel.binary};
  if (!takesChoices)
    return cache.put(stored, nullptr);
  if (request.task.hasVariants && !options.forcedTemplate().empty()) {
    // A forced variant is one run's wish, not the best choice for the problem: only its kernel is kept.
    NSA_RETURN_IF_ERROR(cache.put(stored, nullptr));
    return Status::error(ErrorCode::kInvalidArgument,
                         "template " + options.forceVariant + " was forced, so it is not stored as a choice",
                         "tune without force_variant");
  }
  StoredChoice choice;
  choice.problem = request.task.key;
  choice.device = withTemplates(request.device, kernel.templates); // edited since the engine was opened, another one
  choice.content = kernel.content;
  choice.tuned = origin.tuned;
  choice.provenance = std::move(origin.provenance);
  choice.evidence = std::move(origin.evidence);
  return cache.put(stored, &choice);
}

} // namespace nsa
