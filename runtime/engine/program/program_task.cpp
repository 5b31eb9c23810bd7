#include "runtime/engine/program/program_task.h"

#include "runtime/engine/program/program_trial.h"

namespace nsa {

namespace {

using Interface = std::shared_ptr<const ProgramInterface>;

KernelTask taskOf(const ProgramSource::Pointer &source, const Interface &interface, const Interface &reference) {
  KernelTask task;
  task.problem = {source->key(), interface->fixed(), {}};
  for (size_t i = 0; i < interface->scalars().size(); ++i)
    if (interface->isSize(static_cast<int>(i)))
      task.problem.buckets.emplace(interface->scalars()[i].name,
                                   bucketOf(interface->given().integer(static_cast<int>(i))));
  task.key = task.problem.text();
  task.dtype = interface->dtype();
  task.scalars = interface->given().values;
  task.program = source;
  task.referenceChoices = source->referenceChoices;
  task.makeTrial = [interface, reference](Device &device, uint64_t seed, double mostBytes, const KernelTask::Serve &) {
    return ProgramTrial::make(device, interface, reference, seed, mostBytes);
  };
  task.ownNames = interface;
  return task;
}

} // namespace

Result<KernelTask> programTask(const ProgramSource::Pointer &source, const Interface &interface) {
  if (!source->reference)
    return taskOf(source, interface, nullptr);
  NSA_ASSIGN_OR_RETURN(const Interface reference, interface->ofReference(*source->reference));
  KernelTask task = taskOf(source, interface, reference);
  task.reference = std::make_shared<const KernelTask>(taskOf(source->reference, reference, nullptr));
  return task;
}

} // namespace nsa
