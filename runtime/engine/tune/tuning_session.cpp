#include "runtime/engine/tune/tuning_session.h"

#include "runtime/engine/compile/default_kernel.h"
#include "runtime/engine/report/stopwatch.h"
#include "runtime/engine/tune/kernel_trial.h"
#include "runtime/engine/tune/pruned_candidates.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>

namespace nsa {

namespace {

// A reference must come soon: the cheapest configurations fit where any does.
constexpr size_t kDefinitionAttempts = 3;

uint64_t drawSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

} // namespace

TuningSession::TuningSession(const Environment &environment, const KernelTask &task, CompileRequest request,
                             std::vector<Candidate> candidates)
    : environment(environment), task(task), request(std::move(request)), candidates(std::move(candidates)),
      compiled(this->candidates.size()), kernels(this->candidates.size()), inputSeed(drawSeed()), trialSeed(inputSeed) {
}

Result<std::unique_ptr<Trial>> TuningSession::makeTrial(uint64_t seed, double mostBytes) const {
  return task.makeTrial(environment.device, seed, mostBytes, environment.serve);
}

void TuningSession::restart() {
  // The old one goes when the new one has its memory, or it would get the same.
  if (Result<std::unique_ptr<Trial>> made = makeTrial(++trialSeed, trialLimit))
    trial = std::move(*made);
  else
    environment.logger.log(LogLevel::kDebug, "tuner",
                           "measuring goes on in the same memory: " + made.status().toString());
}

Result<TuneReport> TuningSession::run() {
  const double begin = monotonicSeconds();
  NSA_ASSIGN_OR_RETURN(trialLimit, trialBytes(environment.device, environment.stop != nullptr));
  NSA_ASSIGN_OR_RETURN(trial,
                       makeTrialThatFits(trialLimit, [this](double most) { return makeTrial(inputSeed, most); }));
  const double madeSeconds = monotonicSeconds() - begin;
  if (namesReference()) // a program's writer wants to hear of the reference, and not of each candidate
    NSA_RETURN_IF_ERROR(prepareReference());
  const double readySeconds = monotonicSeconds() - begin;
  environment.logger.log(LogLevel::kInfo, "tuner",
                         std::to_string(candidates.size()) + " candidates on " + trial->shapeText() +
                             (cut().empty() ? "" : " (" + cut() + ")") + ", input seed " + std::to_string(inputSeed));

  TuneCallbacks callbacks;
  // A candidate is loaded where it was compiled.
  callbacks.beginThread = [this] { environment.device.ignoreCaptures(); };
  callbacks.compile = [this](size_t index) { return compile(index); };
  callbacks.check = [this](size_t index) { return check(index); };
  callbacks.measure = [this](size_t index) { return measure(index); };
  callbacks.restart = [this] { restart(); };
  callbacks.now = [this] {
    return environment.stop && (*environment.stop)() ? std::numeric_limits<double>::infinity() : monotonicSeconds();
  };
  callbacks.progress = [this](std::string_view phase, size_t done, size_t total) {
    if (environment.logger.enabled(LogLevel::kDebug))
      environment.logger.log(LogLevel::kDebug, "tuner",
                             std::string(phase) + " " + std::to_string(done) + "/" + std::to_string(total));
  };
  TuneOptions options;
  options.budgetSeconds = environment.options.tuneBudgetSeconds;
  options.spentSeconds = readySeconds;
  options.compileThreads = environment.options.compileThreads;
  options.exhaustive = environment.options.tuneExhaustive;
  options.seed = inputSeed;
  options.resolutionMs = environment.device.timeResolutionMs();
  options.stateShift = environment.device.stateShift();
  options.warmUpMs = environment.device.warmUpMs();
  options.restartSeconds = madeSeconds;
  Result<TuneReport> tuned = tune(candidates, callbacks, options);
  // What no candidate can compile, each for the same reason, as an error of types, is told once and as it is.
  if (!tuned && !failure.isOk() && !hasOtherFailures &&
      std::ranges::none_of(kernels, [](const auto &each) { return each != nullptr; }))
    return failure;
  NSA_ASSIGN_OR_RETURN(report, std::move(tuned));
  report.phases.prepare = readySeconds;
  for (const CandidateReport &entry : report.candidates) {
    Counters &counters = environment.counters;
    if (entry.outcome == CandidateOutcome::kRejected)
      Counters::raise(counters.kernelsRejected);
    if (entry.rounds > 0 && entry.outcome != CandidateOutcome::kRejected)
      Counters::raise(counters.kernelsMeasured);
  }
  return report;
}

Status TuningSession::compile(size_t index) {
  Result<std::shared_ptr<const LoadedKernel>> kernel = build(task, request, candidates[index], compiled[index]);
  if (!kernel) {
    noteFailure(kernel.status());
    return kernel.status();
  }
  kernels[index] = std::move(*kernel);
  return Status::ok();
}

void TuningSession::noteFailure(const Status &why) {
  const std::lock_guard lock(failureMutex);
  if (failure.isOk())
    failure = why;
  else
    hasOtherFailures = hasOtherFailures || failure.toString() != why.toString();
}

Result<std::shared_ptr<const LoadedKernel>> TuningSession::build(const KernelTask &of, CompileRequest by,
                                                                 const Candidate &candidate,
                                                                 std::shared_ptr<const CompiledKernel> &kernel) {
  by.templateName = candidate.templateName;
  NSA_ASSIGN_OR_RETURN(by.config, parseValues(candidate.config));
  std::shared_ptr<const CompiledKernel> made = environment.memo.find(by);
  if (!made) {
    NSA_ASSIGN_OR_RETURN(CompiledKernel fresh, environment.compiler.compile(by));
    Counters::raise(environment.counters.kernelsCompiled);
    made = std::make_shared<const CompiledKernel>(std::move(fresh));
    environment.memo.keep(by, made);
  }
  Result<std::shared_ptr<const LoadedKernel>> loaded = LoadedKernel::load(
      environment.device, made->content, std::make_shared<const Manifest>(made->manifest), made->binary, of.names());
  if (!loaded)
    return loaded.status();
  Counters::raise(environment.counters.kernelsLoaded);
  int32_t grid[3];
  NSA_RETURN_IF_ERROR((*loaded)->grid(of.sizes(), grid));
  kernel = std::move(made);
  return loaded;
}

Result<std::shared_ptr<const LoadedKernel>> TuningSession::buildReference() {
  const KernelTask &of = task.reference ? *task.reference : task;
  CompileRequest by = request;
  by.templateName = of.definingTemplate;
  by.op = of.problem.op;
  by.fixed = of.problem.fixed;
  by.program = of.program;
  NSA_ASSIGN_OR_RETURN(const std::vector<Candidate> listed,
                       listReference(environment.compiler, by, of.referenceChoices));
  std::shared_ptr<const CompiledKernel> kernel;
  Result<std::shared_ptr<const LoadedKernel>> loaded = build(of, by, listed.front(), kernel);
  for (size_t i = 1; !loaded && i < std::min(listed.size(), kDefinitionAttempts); ++i)
    loaded = build(of, by, listed[i], kernel);
  return loaded;
}

Result<TuningResult> TuningSession::namedResult() {
  NSA_ASSIGN_OR_RETURN(const std::shared_ptr<const LoadedKernel> kernel, buildReference());
  NSA_ASSIGN_OR_RETURN(TuningResult result, trial->checkReference(*kernel));
  if (compareResults(result, result, task.dtype).isOk())
    return result;
  // Only what is not finite differs from itself.
  const auto isFinite = [](float value) { return std::isfinite(value); };
  const auto found = std::ranges::find_if_not(
      result.outputs, [&](const TuningResult::Output &output) { return std::ranges::all_of(output.values, isFinite); });
  return Status::error(ErrorCode::kUnsupported,
                       (found == result.outputs.end() ? "a tensor" : found->name) +
                           " has elements that are not finite, or that were not stored",
                       "with the drawn numbers of a tuning a reference has to store finite numbers everywhere");
}

Status TuningSession::prepareReference() {
  if (namesReference()) {
    Result<TuningResult> result = namedResult();
    if (result) {
      reference = std::move(*result);
      return Status::ok();
    }
    ErrorInfo info = result.status().error();
    info.message = (task.reference ? "the program " + task.reference->program->kernel + ", the reference of "
                                   : "the reference configuration of the program ") +
                   task.program->kernel + (task.reference ? ", gives no result: " : " gives no result: ") +
                   info.sentence();
    return Status(std::move(info));
  }
  const std::string_view name = task.definingTemplate;
  std::shared_ptr<const LoadedKernel> kernel;
  bool isCandidate = false;
  for (size_t i = 0; i < candidates.size() && !kernel; ++i)
    if (name.empty() || candidates[i].templateName == name) {
      isCandidate = true;
      kernel = kernels[i];
    }
  if (!isCandidate)
    if (Result<std::shared_ptr<const LoadedKernel>> built = buildReference())
      kernel = std::move(*built);
  // Where no configuration of the tile program fits the device, the incumbent is all there is to compare with.
  for (size_t i = 0; i < candidates.size() && !kernel; ++i)
    kernel = kernels[i];
  NSA_ASSIGN_OR_RETURN(TuningResult result, trial->check(*kernel));
  // A reference that holds NaN would reject every candidate, each with a misleading text.
  NSA_RETURN_IF_ERROR(compareResults(result, result, task.dtype));
  reference = std::move(result);
  return Status::ok();
}

Status TuningSession::check(size_t index) {
  if (!reference)
    NSA_RETURN_IF_ERROR(prepareReference());
  NSA_ASSIGN_OR_RETURN(TuningResult result, trial->check(*kernels[index]));
  return compareResults(*reference, result, task.dtype);
}

Result<double> TuningSession::measure(size_t index) {
  return environment.device.time([&](void *stream) { return trial->launchTimed(*kernels[index], stream); });
}

std::vector<Measurement> TuningSession::evidence() const {
  std::vector<Measurement> result;
  for (const CandidateReport &entry : report.candidates) {
    if (entry.outcome == CandidateOutcome::kPruned)
      continue;
    Measurement measurement;
    measurement.templateName = entry.candidate.templateName;
    measurement.config = entry.candidate.config;
    measurement.outcome = candidateOutcomeName(entry.outcome);
    measurement.milliseconds = entry.medianMs;
    measurement.ratioToIncumbent = entry.ratioToIncumbent;
    measurement.detail = entry.detail;
    result.push_back(std::move(measurement));
  }
  std::ranges::move(prunedRows(report), std::back_inserter(result));
  return result;
}

} // namespace nsa
