#include "runtime/engine/program/program_task.h"

#include "runtime/engine/program/program_trial.h"

namespace nsa {

KernelTask programTask(ProgramSource::Pointer source, std::shared_ptr<const ProgramInterface> interface) {
  KernelTask task;
  task.problem = {source->key(), interface->fixed(), {}};
  for (size_t i = 0; i < interface->scalars().size(); ++i)
    if (interface->isSize(static_cast<int>(i)))
      task.problem.buckets.emplace(interface->scalars()[i].name,
                                   bucketOf(interface->given().integer(static_cast<int>(i))));
  task.key = task.problem.text();
  task.dtype = interface->dtype();
  task.scalars = interface->given().values;
  task.program = std::move(source);
  task.makeTrial = [interface](Device &device, uint64_t seed, double mostBytes, const KernelTask::Serve &) {
    return ProgramTrial::make(device, interface, seed, mostBytes);
  };
  task.ownNames = std::move(interface);
  return task;
}

} // namespace nsa
