#include "runtime/engine/choices/kernel_task.h"

#include "runtime/engine/choices/routes.h"

namespace nsa {

KernelTask operatorTask(const Spec &spec, const Maxima &ofPlan) {
  const Maxima &maxima = choosingMaxima(spec, ofPlan);
  const Problem problem = Problem::make(spec, maxima);
  const OperatorDef &def = definitionOf(spec.op);
  KernelTask task;
  task.problem = ProblemKey::of(problem);
  task.key = problem.key();
  task.isTuned = isTuned(spec);
  task.mayBeOutdated = !spec.batchInvariant;
  task.hasVariants = hasVariants(spec.op);
  task.definingTemplate = def.definingTemplate;
  task.dtype = spec.dtype;
  if (task.hasVariants)
    task.threshold = [spec, maxima]() -> std::optional<KernelTask::Route> {
      if (!isAsMeasured(spec, maxima))
        return std::nullopt;
      return KernelTask::Route{routeFamily(spec), attentionRoute(spec.op)};
    };
  task.thresholdSize = maxima.seqlenK;
  task.grid = GridSizes::ofMaxima(spec, maxima);
  return task;
}

} // namespace nsa
