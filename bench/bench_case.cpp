#include "bench/bench_case.h"

#include <algorithm>
#include <cmath>

namespace nsa::bench {
namespace {

constexpr double kSampleMs = 1.0; // below it one run is too close to the clock's own steps
constexpr int kCheckedQueries = 4;

struct Geometry {
  const char *name;
  int32_t queryHeads, kvHeads, qkDim, vDim;
};

BenchCase makeCase(Operator op, const Geometry &geometry, int64_t tokens) {
  BenchCase result;
  result.name = geometry.name;
  result.spec.op = op;
  result.spec.queryHeads = geometry.queryHeads;
  result.spec.kvHeads = geometry.kvHeads;
  result.spec.qkDim = geometry.qkDim;
  result.spec.vDim = geometry.vDim;
  result.spec.window = 512;
  result.maxima = {.batch = 1, .tokensQ = tokens, .seqlenQ = tokens, .seqlenK = tokens};
  return result;
}

// A few queries, the first and the last among them, each as a sequence of its own that ends with it.
reference::ErrorReport checkSample(const tools::AttentionInputs &inputs, const tools::AttentionOutputs &outputs) {
  reference::Attention problem = tools::referenceProblem(inputs);
  const int64_t tokens = inputs.maxima.seqlenQ, offset = inputs.maxima.seqlenK - tokens;
  problem.sequences.clear();
  for (int64_t i = 0; i < kCheckedQueries; ++i) {
    const int64_t query = i * (tokens - 1) / (kCheckedQueries - 1);
    problem.sequences.push_back(
        {.batch = 0, .queryBegin = query, .queries = 1, .keyBegin = 0, .keys = offset + query + 1, .firstRow = i});
  }
  return reference::compare(problem, reference::attend(problem), tools::tensorView(outputs.out, true),
                            tools::tensorView(outputs.lse, false));
}

} // namespace

std::vector<BenchCase> benchCases(bool cuda, bool quick) {
  // nsa192 has the paper's heads; nsa128 and gqa4 are what other implementations publish.
  constexpr Geometry kNsa192 = {"nsa192", 64, 4, 192, 128}, kNsa128 = {"nsa128", 64, 4, 128, 128},
                     kGqa4 = {"gqa4", 32, 8, 128, 128}, kSmall = {"small", 8, 1, 64, 64};
  std::vector<BenchCase> cases;
  if (quick)
    return {makeCase(Operator::kWindow, kSmall, 256)};
  if (!cuda) {
    for (Operator op : {Operator::kWindow, Operator::kDense})
      for (int64_t tokens : {2048, 4096})
        cases.push_back(makeCase(op, kSmall, tokens));
    return cases;
  }
  for (const Geometry &geometry : {kNsa128, kNsa192, kGqa4})
    for (int64_t tokens : {4096, 16384, 65536}) {
      cases.push_back(makeCase(Operator::kWindow, geometry, tokens));
      if (tokens <= 16384)
        cases.push_back(makeCase(Operator::kDense, geometry, tokens));
    }
  return cases;
}

Result<BenchResult> measure(nsa_engine *engine, tools::Accelerator &accelerator, const tools::AttentionInputs &inputs,
                            int repeats) {
  Result<tools::PlanHandle> plan = tools::createPlan(engine, inputs.spec, inputs.maxima, accelerator.stream());
  if (!plan)
    return plan.status();
  Result<tools::DeviceAttention> job = tools::DeviceAttention::upload(accelerator, inputs);
  if (!job)
    return job.status();
  NSA_RETURN_IF_ERROR(job->allocateWorkspace(plan->get()));
  auto runTimes = [&](int64_t runs) {
    return accelerator.time([&]() -> Status {
      for (int64_t i = 0; i < runs; ++i)
        NSA_RETURN_IF_ERROR(job->enqueue(plan->get()));
      return Status::ok();
    });
  };
  // The first run warms caches and clocks up and is what the result is checked on; the second sizes the samples.
  NSA_RETURN_IF_ERROR(runTimes(1).status());
  Result<tools::AttentionOutputs> outputs = job->download();
  if (!outputs)
    return outputs.status();
  const reference::Tolerance tolerance = reference::toleranceOf(inputs.spec.dtype);
  const reference::ErrorReport error = checkSample(inputs, *outputs);
  if (!error.within(tolerance))
    return Status::error(ErrorCode::kInternal,
                         "the kernel is wrong, so it is not measured: " + error.toString(tolerance));
  Result<double> once = runTimes(1);
  if (!once)
    return once.status();
  const auto runs = static_cast<int64_t>(std::ceil(kSampleMs / std::max(*once, 1e-3)));

  std::vector<double> samples;
  for (int i = 0; i < repeats; ++i) {
    Result<double> milliseconds = runTimes(runs);
    if (!milliseconds)
      return milliseconds.status();
    samples.push_back(*milliseconds / static_cast<double>(runs));
  }
  std::sort(samples.begin(), samples.end());

  const nlohmann::json description = tools::describePlan(plan->get());
  const nlohmann::json &launch = description["launches"][0];
  BenchResult result;
  result.templateName = launch.value("template", "");
  result.config = launch.value("config", "");
  result.source = launch.value("source", "");
  result.medianMs = samples[samples.size() / 2];
  result.fastestMs = samples.front();
  result.slowestMs = samples.back();
  result.tflops = tools::attentionFlops(inputs) / result.medianMs * 1e-9;
  result.sampledError = error.relativeRms;
  return result;
}

} // namespace nsa::bench
