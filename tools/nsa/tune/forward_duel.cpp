#include "tools/nsa/tune/forward_duel.h"

#include "bench/measure/plan_contender.h"

#include <optional>
#include <set>
#include <vector>

namespace nsa::tools {
namespace {

constexpr int kSamples = 5, kWarmUps = 2;

// An operator's plan with the tensors that it runs on.
struct Side {
  OperatorInputs inputs;
  std::optional<DeviceOperator> job;
  std::unique_ptr<bench::PlanContender> contender;
};

Result<std::unique_ptr<Side>> makeSide(const CrossoverJob &job, Operator op, int64_t tokens, nsa_engine *engine,
                                       Accelerator &accelerator, Buffer &flush) {
  auto side = std::make_unique<Side>();
  Spec spec = job.spec;
  spec.op = op;
  const std::vector<int64_t> lengths(static_cast<size_t>(job.batch), tokens);
  side->inputs = drawInputs(spec, {lengths, lengths}, 1);
  // What the check of sampled rows needs beside the result.
  const std::set<TensorName> checked = {TensorName::kBlockList, TensorName::kKComp, TensorName::kVComp};
  NSA_ASSIGN_OR_RETURN(DeviceOperator uploaded,
                       DeviceOperator::upload(accelerator, side->inputs,
                                              definitionOf(op).isForward() ? checked : std::set<TensorName>()));
  side->job = std::move(uploaded);
  NSA_ASSIGN_OR_RETURN(side->contender,
                       bench::PlanContender::make(std::string(operatorName(op)), engine,
                                                  {accelerator, side->inputs, *side->job, flush, kWarmUps}));
  return side;
}

} // namespace

Result<Duel> ForwardDuel::measure(const CrossoverJob &job, int64_t tokens) {
  if (!accelerator) {
    NSA_ASSIGN_OR_RETURN(std::unique_ptr<Accelerator> opened, Accelerator::open(device));
    NSA_ASSIGN_OR_RETURN(flush, bench::flushBuffer(*opened));
    accelerator = std::move(opened);
  }
  std::vector<std::unique_ptr<Side>> sides;
  for (const Operator op : {job.spec.op, Operator::kDense}) {
    NSA_ASSIGN_OR_RETURN(std::unique_ptr<Side> side, makeSide(job, op, tokens, engine, *accelerator, flush));
    sides.push_back(std::move(side));
  }
  const std::vector<Result<bench::Times>> times =
      bench::measureInTurns({sides[0]->contender.get(), sides[1]->contender.get()}, kSamples);
  for (const Result<bench::Times> &one : times)
    if (!one)
      return one.status();
  return Duel{tokens, times[0]->medianMs, times[1]->medianMs};
}

} // namespace nsa::tools
