#include "tests/cache/small_job.h"

#include "tools/support/operator_check.h"

#include <gtest/gtest.h>

namespace nsa::test {

namespace {

void failOnWarning(void *waits, nsa_log_level level, const char *tag, const char *message) {
  if (level >= NSA_LOG_WARNING)
    ADD_FAILURE() << tag << ": " << message;
  else if (std::string_view(message).ends_with(": waiting for it"))
    ++*static_cast<std::atomic<int> *>(waits);
}

} // namespace

SmallJob smallJob(int number) {
  SmallJob job;
  job.spec.op = Operator::kWindow;
  job.spec.dtype = number % 2 ? DType::kBf16 : DType::kF32;
  job.spec.layout = Layout::kDense;
  job.spec.kvHeads = 1;
  job.spec.queryHeads = 1 + number / 2;
  job.spec.qkDim = job.spec.vDim = 16;
  job.spec.window = 9;
  job.maxima = {.batch = 1, .tokensQ = 33, .seqlenQ = 33, .seqlenK = 40};
  return job;
}

Status runSmallJob(nsa_engine *engine, int number, uint64_t seed, std::string *source) {
  const SmallJob job = smallJob(number);
  const tools::OperatorInputs inputs = tools::drawInputs(job.spec, tools::SequenceLengths::largest(job.maxima), seed);
  Result<tools::PlanHandle> plan = tools::createPlan(engine, inputs.spec, inputs.maxima);
  if (!plan)
    return plan.status();
  if (source)
    *source = tools::describePlan(plan->get()).value("source", "");
  Result<std::unique_ptr<tools::Accelerator>> accelerator = tools::Accelerator::open("cpu");
  if (!accelerator)
    return accelerator.status();
  Result<tools::RunResult> result =
      tools::runOnce(**accelerator, plan->get(), inputs, tools::requiredOutputs(job.spec.op));
  if (!result)
    return result.status();
  if (const tools::OperatorCheck check = tools::checkOperator(inputs, result->outputs); !check.within())
    return Status::error(ErrorCode::kInternal,
                         "job " + std::to_string(number) + ", seed " + std::to_string(seed) + ": " + check.toString());
  return Status::ok();
}

tools::EngineHandle openSmallEngine(const std::string &cachePath, nsa_miss_policy policy,
                                    const std::string &templateDir, std::atomic<int> *waits) {
  tools::EngineSettings settings;
  settings.cachePath = cachePath;
  settings.missPolicy = policy;
  settings.templateDir = templateDir;
  settings.tuneBudgetSeconds = 20;
  settings.cpuThreads = 1;
  settings.compileThreads = 2;
  settings.log = failOnWarning;
  settings.logUser = waits;
  settings.logLevel = waits ? NSA_LOG_INFO : NSA_LOG_WARNING;
  Result<tools::EngineHandle> engine = tools::createEngine(settings);
  EXPECT_TRUE(engine) << engine.status().toString();
  return engine ? std::move(*engine) : nullptr;
}

nsa_stats statsOf(const nsa_engine *engine) {
  nsa_stats stats = NSA_INIT(nsa_stats);
  EXPECT_EQ(nsa_engine_get_stats(engine, &stats, nullptr), NSA_OK);
  return stats;
}

} // namespace nsa::test
