#include "bench/plan_contender.h"

#include "tools/support/operator_check.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace nsa::bench {
namespace {

constexpr int kWarmUps = 3; // caches, clocks and lazy loading
constexpr int kCheckedQueries = 4;
constexpr double kSampleMs = 1.0; // on the CPU: below it one run is too close to the clock's own steps

// A few queries, the first and the last among them, stand for all.
std::vector<int64_t> sampledRows(const tools::OperatorInputs &inputs) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < kCheckedQueries; ++i)
    rows.push_back(i * (inputs.maxima.seqlenQ - 1) / (kCheckedQueries - 1));
  return rows;
}

} // namespace

Result<std::unique_ptr<PlanContender>> PlanContender::make(std::string name, nsa_engine *engine, const Arena &arena) {
  std::unique_ptr<PlanContender> contender(new PlanContender(std::move(name), arena));
  const tools::OperatorInputs &inputs = arena.inputs;
  Result<tools::PlanHandle> plan = tools::createPlan(engine, inputs.spec, inputs.maxima, arena.accelerator.stream());
  if (!plan)
    return plan.status();
  contender->plan = std::move(*plan);
  contender->description = tools::describePlan(contender->plan.get());
  NSA_RETURN_IF_ERROR(arena.job.allocateWorkspace(contender->plan.get()));
  NSA_RETURN_IF_ERROR(arena.job.poisonOutputs());
  for (int i = 0; i < kWarmUps; ++i)
    if (Result<double> once = contender->sample(); !once)
      return once.status();
  Result<tools::NamedTensors> outputs = arena.job.download();
  if (!outputs)
    return outputs.status();
  const tools::OperatorCheck check = tools::checkOperator(inputs, *outputs, sampledRows(inputs));
  if (!check.within())
    return Status::error(ErrorCode::kInternal,
                         contender->contenderName + " is wrong, so it is not measured: " + check.toString());
  for (const tools::OutputCheck &output : check.outputs)
    if (output.error)
      contender->relativeError = std::max(contender->relativeError, output.error->relativeRms);
  return contender;
}

Result<double> PlanContender::sample() {
  if (arena.flush.size() > 0) {
    NSA_RETURN_IF_ERROR(arena.accelerator.fill(arena.flush.data(), 0, arena.flush.size()));
    return arena.accelerator.time([&] { return arena.job.enqueue(plan.get()); });
  }
  int runs = 0;
  Result<double> milliseconds = arena.accelerator.time([&]() -> Status {
    const auto start = std::chrono::steady_clock::now();
    do {
      NSA_RETURN_IF_ERROR(arena.job.enqueue(plan.get()));
      ++runs;
    } while (std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() < kSampleMs);
    return Status::ok();
  });
  if (!milliseconds)
    return milliseconds;
  return *milliseconds / runs;
}

nlohmann::ordered_json PlanContender::facts() const {
  const nlohmann::json &launch = description["launches"].back(), &milliseconds = description["milliseconds"];
  const nlohmann::json evidence = launch.value("evidence", nlohmann::json::object());
  auto number = [&](const char *field) {
    return evidence.contains(field)
               ? nlohmann::ordered_json(std::strtoll(evidence[field].get<std::string>().c_str(), nullptr, 10))
               : nlohmann::ordered_json();
  };
  return {{"relative_error", relativeError},
          {"template", launch.value("template", "")},
          {"config", launch.value("config", "")},
          {"registers", number("registers")},
          {"spilled_bytes", number("local_bytes")},
          {"shared_bytes", launch.value("shared_bytes", 0)},
          {"block_threads", launch.value("threads", 0)},
          {"compile_ms", milliseconds.value("compile", 0.0)},
          {"tune_ms", milliseconds.value("tune", 0.0)}};
}

} // namespace nsa::bench
