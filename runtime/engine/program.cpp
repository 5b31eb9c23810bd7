#include "runtime/engine/program.h"

#include "runtime/engine/engine.h"
#include "runtime/engine/program/program_check.h"
#include "runtime/engine/program/program_comparison.h"
#include "runtime/engine/program/program_task.h"
#include "runtime/engine/report/describe.h"
#include "runtime/engine/report/miss_report.h"
#include "runtime/engine/report/profiler_range.h"

namespace nsa {

Device &Program::device() const { return held->engine->device(); }

size_t Program::workspaceBytes() const { return workspaceAligned(core->kernel->workspaceBytes()); }

Status Program::run(std::span<const NamedTensor> tensors, std::span<const NamedScalar> scalars, void *workspace,
                    size_t workspaceBytes, void *stream) const {
  const ProfilerRange range("nsa run");
  held->engine->countRun();
  KernelCall call;
  NSA_RETURN_IF_ERROR(prepareProgramCall(*interface, tensors, scalars, call));
  NSA_RETURN_IF_ERROR(interface->named(checkWorkspace(workspace, workspaceBytes, this->workspaceBytes())));
  int32_t word[kDeviceStatusWords] = {}; // of the CPU; a GPU's kernel has not run yet
  NSA_RETURN_IF_ERROR(
      interface->named(core->kernel->launch(call, device().isGpu() ? held->statusWord : word, workspace, stream)));
  return interface->statusOf({word[0], word[1]});
}

Status Program::check(std::span<const NamedTensor> tensors, std::span<const NamedScalar> scalars, void *stream) const {
  NSA_RETURN_IF_ERROR(status(stream));
  return checkProgramCall({*source, *interface, core->kernel->manifest(), held->engine->settings().templateDir},
                          device(), tensors, scalars);
}

Status Program::status(void *stream) const {
  NSA_ASSIGN_OR_RETURN(const DeviceReport report, device().readStatusWord(held->statusWord, stream));
  return interface->statusOf(report);
}

Result<std::string> Program::compare(std::span<const NamedTensor> tensors, std::span<const NamedScalar> scalars,
                                     void *workspace, size_t workspaceBytes, void *stream) const {
  NSA_RETURN_IF_ERROR(interface->named(
      held->checkNotCapturing(stream, "a comparison waits for its kernels, and a captured one does not run",
                              "compare outside of the capture")));
  KernelCall call, referenceCall;
  NSA_RETURN_IF_ERROR(prepareProgramCall(*interface, tensors, scalars, call));
  NSA_ASSIGN_OR_RETURN(const KernelTask task, programTask(source, interface));
  std::shared_ptr<const ProgramInterface> reference = interface;
  if (source->reference) {
    NSA_ASSIGN_OR_RETURN(reference, interface->ofReference(*source->reference));
  }
  NSA_RETURN_IF_ERROR(prepareReferenceCall(*reference, tensors, scalars, referenceCall));
  NSA_ASSIGN_OR_RETURN(const std::shared_ptr<const KernelCore> definition,
                       held->engine->planner->define(task.reference ? *task.reference : task));
  int32_t word[kDeviceStatusWords] = {};
  const ProgramComparison comparison(device(), tensors, device().isGpu() ? held->statusWord : word, stream);
  NSA_ASSIGN_OR_RETURN(
      const std::vector<ComparedPart> parts,
      comparison.run({*interface, call, *core->kernel}, {*reference, referenceCall, *definition->kernel}));
  NSA_RETURN_IF_ERROR(run(tensors, scalars, workspace, workspaceBytes, stream));
  NSA_RETURN_IF_ERROR(status(stream));
  return describeComparison("program", source->kernel, parts);
}

std::string Program::describe() const { return describeProgram(*core, from, device().key(), workspaceBytes()); }

Result<std::unique_ptr<Program>> Engine::program(const ProgramSource::Pointer &source, const ProgramValues &values,
                                                 void *stream) {
  const ProfilerRange range("nsa program");
  const auto failed = [&](Status status) {
    Counters::raise(ownCounters.plansFailed);
    return status;
  };
  Result<std::shared_ptr<const ProgramInterface>> interface = ProgramInterface::make(*source, values);
  if (!interface)
    return failed(interface.status());
  Result<KernelTask> described = programTask(source, *interface);
  if (!described)
    return failed(described.status());
  KernelTask task = std::move(*described);
  std::shared_ptr<const KernelCore> core;
  {
    std::lock_guard lock(programMutex);
    if (const auto found = programKernels.find(task.key); found != programKernels.end())
      core = found->second;
  }
  PlanSource from = PlanSource::kMemory;
  if (!core) {
    Result<bool> capturing = ownDevice->isCapturing(stream);
    if (!capturing)
      return failed(capturing.status());
    if (*capturing)
      return failed(Status(
          ErrorInfo{.code = ErrorCode::kCapturing,
                    .field = "stream",
                    .value = "capturing",
                    .message = "the stream captures a graph, and the program '" + task.key + "' is not in memory",
                    .hint = "make the program once, with the same values, before the capture begins"}));
    const std::string key = task.key;
    Planner::Made made = planner->kernelOf(task);
    if (!made)
      return failed(withHint(made.status(), programTuning(source->kernel, source->path, values)));
    core = std::move(*made);
    from = core->source;
    ownCounters.add(core->times);
    Counters::raise(from == PlanSource::kCompiled ? ownCounters.plansCompiled : ownCounters.plansFromDatabase);
    {
      std::lock_guard lock(programMutex);
      programKernels.insert_or_assign(key, core);
    }
    if (background && core->wantsTuning(true))
      background->add({.key = key, .tune = [this, task](const BackgroundTuner::StopSignal &stop, bool &) {
                         return tuneMeanwhile(task, stop);
                       }});
  } else {
    int32_t grid[3];
    if (Status status = core->kernel->grid(task.sizes(), grid); !status.isOk())
      return failed(std::move(status));
    ownCounters.plansFromMemory.raise();
  }
  NSA_ASSIGN_OR_RETURN(Plan * taken, pool->take());
  PlanPointer held(taken);
  held->engine = this;
  return std::unique_ptr<Program>(new Program(std::move(held), source, std::move(*interface), std::move(core), from));
}

Status Engine::tuneMeanwhile(const KernelTask &task, const BackgroundTuner::StopSignal &stop) {
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const KernelCore> kernel, planner->tuneMeanwhile(task, stop));
  ownCounters.add(kernel->times);
  std::lock_guard lock(programMutex);
  std::shared_ptr<const KernelCore> &present = programKernels[task.key];
  if (present->wantsTuning(true)) // or else nsa_program_tune was faster
    present = std::move(kernel);
  return Status::ok();
}

Result<std::string> Engine::explainProgram(const ProgramSource::Pointer &source, const ProgramValues &values) {
  NSA_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramInterface> interface,
                       ProgramInterface::make(*source, values));
  NSA_ASSIGN_OR_RETURN(KernelTask task, programTask(source, interface));
  bool inMemory = false;
  {
    std::lock_guard lock(programMutex);
    inMemory = programKernels.contains(task.key);
  }
  return describeExplain(planner->explain(std::move(task), {.part = source->kernel}, inMemory));
}

Result<std::string> Engine::tuneProgram(const ProgramSource::Pointer &source, const ProgramValues &values,
                                        double budgetSeconds) {
  NSA_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramInterface> interface,
                       ProgramInterface::make(*source, values));
  NSA_ASSIGN_OR_RETURN(KernelTask task, programTask(source, interface));
  const std::string key = task.key;
  std::string report;
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const KernelCore> core, planner->tune(std::move(task), report, budgetSeconds));
  ownCounters.add(core->times);
  std::lock_guard lock(programMutex);
  programKernels.insert_or_assign(key, std::move(core)); // later programs of these values get the winner
  return report;
}

} // namespace nsa
