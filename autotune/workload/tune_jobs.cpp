#include "autotune/workload/tune_jobs.h"

#include "runtime/base/manifest.h"
#include "runtime/engine/tune/kernel_trial.h"

#include <map>
#include <set>

namespace nsa {
namespace {

class Expansion {
public:
  Expansion(const RouteRules &rules, const RoutedSteps &routed) : rules(rules), routed(routed) {}

  Result<std::vector<TuneJob>> run(const std::vector<Workload> &workloads) {
    for (const Workload &workload : workloads)
      NSA_RETURN_IF_ERROR(add(workload));
    for (const Workload &workload : workloads)
      for (const Operator op : workload.operators)
        if (!present.contains(op))
          return Status::invalid(kOperatorsField, std::string(operatorName(op)),
                                 "must be of kernels that the workloads have: " + operatorsText(present));
    return std::move(jobs);
  }

private:
  Status add(const Workload &workload) {
    calls = 0;
    for (size_t head = 0; head < workload.heads.size(); ++head)
      for (DType dtype : workload.dtypes) {
        Spec spec = workload.heads[head].spec;
        spec.dtype = dtype;
        if (workload.prefill)
          NSA_RETURN_IF_ERROR(addPrefill(workload, head, spec));
        if (workload.decode)
          NSA_RETURN_IF_ERROR(addDecode(workload, head, spec));
      }
    for (size_t i = 0; i < workload.plans.size(); ++i) {
      const PlannedCall &plan = workload.plans[i];
      NSA_RETURN_IF_ERROR(
          addCall(workload, {plan.headsText(), "plans[" + std::to_string(i) + "]"}, plan.spec, plan.maxima));
    }
    if (calls == 0)
      return Status::invalid(kDirectionField, std::string(directionName(workload.direction)),
                             "must be forward or both: no call of the workload " + workload.name + " has a gradient");
    return Status::ok();
  }

  Status addPrefill(const Workload &workload, size_t head, Spec spec) {
    spec.op = withoutCache(spec.op);
    spec.clearUnread();
    for (Layout layout : workload.prefill->layouts)
      for (int64_t batch : workload.prefill->batch)
        for (int64_t length : workload.prefill->lengths) {
          spec.layout = layout;
          NSA_RETURN_IF_ERROR(
              addCall(workload, ofHead(workload, head, "prefill"), spec,
                      {.batch = batch, .tokensQ = batch * length, .seqlenQ = length, .seqlenK = length}));
        }
    return Status::ok();
  }

  Status addDecode(const Workload &workload, size_t head, Spec spec) {
    spec.op = withCache(spec.op);
    spec.layout = Layout::kDense;
    for (int32_t page : workload.decode->pageSizes)
      for (int64_t batch : workload.decode->batch)
        for (int64_t length : workload.decode->lengths) {
          spec.pageSize = page;
          NSA_RETURN_IF_ERROR(addCall(workload, ofHead(workload, head, "decode"), spec,
                                      {.batch = batch, .tokensQ = batch, .seqlenQ = 1, .seqlenK = length}));
        }
    return Status::ok();
  }

  // Where a call comes from: the name of its heads, and the place in the file.
  struct Origin {
    std::string head, place;
  };
  static Origin ofHead(const Workload &workload, size_t head, const std::string &part) {
    return {workload.heads[head].name, part + " of heads[" + std::to_string(head) + "]"};
  }

  // The passes of a call that the workload's direction asks for.
  Status addCall(const Workload &workload, const Origin &origin, const Spec &spec, const Maxima &maxima) {
    const bool isGradient = definitionOf(spec.op).gradientOf != spec.op;
    if (workload.direction != TuneDirection::kBackward || isGradient)
      NSA_RETURN_IF_ERROR(addPass(workload, origin, spec, maxima));
    const OperatorDef *gradient = findGradient(spec.op);
    if (workload.direction == TuneDirection::kForward || !gradient)
      return Status::ok();
    Spec backward = spec;
    backward.op = gradient->op;
    backward.clearUnread();
    return addPass(workload, origin, backward, maxima);
  }

  Status addPass(const Workload &workload, const Origin &origin, const Spec &spec, const Maxima &maxima) {
    ++calls;
    Status status = spec.validate();
    if (status.isOk())
      status = maxima.validate(spec);
    if (!status.isOk()) {
      ErrorInfo info = status.error();
      info.field = workload.path + ": " + origin.place + ": " + info.field;
      return Status(std::move(info));
    }
    std::vector<Step> steps = routingOf(spec, maxima, rules).steps();
    if (routed)
      for (Step &step : routed(spec, maxima))
        steps.push_back(std::move(step));
    for (const std::vector<Step> &possible : {steps, stepsOf(spec, maxima, /*routes=*/0)})
      for (const Step &step : possible)
        present.insert(step.spec.op);
    for (const Step &step : steps) {
      if (!workload.wants(step.spec.op))
        continue;
      const Problem problem = Problem::make(step.spec, step.maxima);
      std::string key = problem.key();
      const auto [found, isNew] = known.emplace(key, jobs.size());
      if (!isNew) {
        std::vector<std::string> &sharing = jobs[found->second].workloads;
        if (sharing.back() != workload.name)
          sharing.push_back(workload.name);
        continue;
      }
      TuneJob job;
      job.head = origin.head;
      job.spec = spec;
      job.maxima = maxima;
      job.kernel = step.spec;
      job.role = roleName(step.role, spec.op);
      job.problem = std::move(key);
      job.family = problem.kernelText();
      job.isTuned = isTuned(step.spec);
      job.workloads = {workload.name};
      jobs.push_back(std::move(job));
    }
    return Status::ok();
  }

  const RouteRules &rules;
  const RoutedSteps &routed;
  std::vector<TuneJob> jobs;
  std::map<std::string, size_t> known; // the job of a problem
  size_t calls = 0;                    // of the present workload
  std::set<Operator> present;          // of all calls, whatever thresholds say and operators are wanted
};

} // namespace

std::string TuneJob::text() const {
  // A forward pass has as many queries as keys, and a step of decode has one, unless a plan says otherwise.
  const bool decodes = definitionOf(spec.op).hasCache;
  const bool isUsual = maxima.seqlenQ == (decodes ? 1 : maxima.seqlenK);
  return head + " " + std::string(operatorName(spec.op)) + " " + std::string(dtypeName(spec.dtype)) + " " +
         (decodes ? spec.pageSize ? "pages of " + std::to_string(spec.pageSize) : "no pages"
                  : std::string(layoutName(spec.layout))) +
         " " + std::to_string(maxima.batch) + "x" + std::to_string(maxima.seqlenK) +
         (isUsual ? "" : " queries=" + std::to_string(maxima.seqlenQ)) + " " + role;
}

Result<std::vector<TuneJob>> expand(const std::vector<Workload> &workloads, const RouteRules &rules,
                                    const RoutedSteps &routed) {
  return Expansion(rules, routed).run(workloads);
}

std::optional<TimedCall> timedCall(const TuneJob &job, bool isGpu) {
  if (isTunedInDecode(job.kernel) || definitionOf(job.kernel.op).tuning != OperatorDef::Tuning::kAlone)
    return std::nullopt;
  const TimedShape shape = timedShape(isGpu, job.kernel, job.maxima);
  return TimedCall{shape, cutText(job.kernel, job.maxima, shape)};
}

} // namespace nsa
