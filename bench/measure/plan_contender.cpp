#include "bench/measure/plan_contender.h"

#include "bench/measure/bench_case.h"
#include "bench/measure/timing.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace nsa::bench {
namespace {

// More than any L2.
constexpr size_t kFlushBytes = size_t{192} << 20;
constexpr double kSampleMs = 1.0; // on the CPU: below it one run is too close to the clock's own steps

} // namespace

Result<tools::Buffer> flushBuffer(tools::Accelerator &accelerator) {
  return accelerator.isCuda() ? accelerator.allocate(kFlushBytes) : Result<tools::Buffer>(tools::Buffer());
}

Status flushCaches(tools::Accelerator &accelerator, const tools::Buffer *flush, int value) {
  return flush ? accelerator.fill(flush->data(), static_cast<unsigned char>(value), flush->size()) : Status::ok();
}

nlohmann::ordered_json kernelFacts(const nlohmann::json &launch) {
  const nlohmann::json evidence = launch.value("evidence", nlohmann::json::object());
  auto number = [&](const char *field) {
    return evidence.contains(field)
               ? nlohmann::ordered_json(std::strtoll(evidence[field].get<std::string>().c_str(), nullptr, 10))
               : nlohmann::ordered_json();
  };
  return {{"template", launch.value("template", "")},
          {"config", launch.value("config", "")},
          {"registers", number("registers")},
          {"spilled_bytes", number("local_bytes")},
          {"shared_bytes", launch.value("shared_bytes", 0)},
          {"block_threads", launch.value("threads", 0)}};
}

Result<double> timeRun(tools::Accelerator &accelerator, const tools::Buffer *flush,
                       const std::function<Status()> &enqueue) {
  NSA_RETURN_IF_ERROR(flushCaches(accelerator, flush));
  if (flush)
    return accelerator.time(enqueue);
  int runs = 0;
  NSA_ASSIGN_OR_RETURN(const double milliseconds, accelerator.time([&]() -> Status {
    const double start = wallMs();
    do {
      NSA_RETURN_IF_ERROR(enqueue());
      ++runs;
    } while (wallMs() - start < kSampleMs);
    return Status::ok();
  }));
  return milliseconds / runs;
}

Result<std::unique_ptr<Arena>> Arena::make(tools::Accelerator &accelerator, const tools::Buffer *flush,
                                           tools::OperatorInputs inputs, int warmUps, std::set<TensorName> wanted,
                                           const std::set<TensorName> &withheld) {
  if (definitionOf(inputs.spec.op).isForward())
    wanted.insert({TensorName::kBlockList, TensorName::kKComp, TensorName::kVComp});
  tools::NamedTensors kept;
  for (const TensorName name : withheld)
    kept.insert(inputs.tensors.extract(name));
  NSA_ASSIGN_OR_RETURN(tools::DeviceOperator job, tools::DeviceOperator::upload(accelerator, inputs, wanted));
  inputs.tensors.merge(kept);
  return std::make_unique<Arena>(accelerator, flush, warmUps, std::move(inputs), std::move(job));
}

Result<std::unique_ptr<PlanContender>> PlanContender::make(std::string name, nsa_engine *engine, Arena &arena) {
  std::unique_ptr<PlanContender> contender(new PlanContender(std::move(name), arena));
  const tools::OperatorInputs &inputs = arena.inputs;
  NSA_ASSIGN_OR_RETURN(contender->plan,
                       tools::createPlan(engine, inputs.spec, inputs.maxima, arena.accelerator.stream()));
  contender->description = tools::describePlan(contender->plan.get());
  NSA_RETURN_IF_ERROR(arena.job.allocateWorkspace(contender->plan.get()));
  NSA_RETURN_IF_ERROR(arena.job.poisonOutputs());
  for (int i = 0; i < std::max(arena.warmUps, 1); ++i)
    NSA_RETURN_IF_ERROR(contender->sample().status());
  NSA_RETURN_IF_ERROR(tools::toStatus(nsa_plan_status(contender->plan.get(), arena.accelerator.stream(), nullptr)));
  NSA_ASSIGN_OR_RETURN(tools::NamedTensors outputs, arena.job.download());
  const tools::OperatorCheck check = tools::checkOperator(inputs, outputs, checkedQueries(inputs.spec, inputs.maxima));
  if (!check.within())
    return Status::error(ErrorCode::kInternal,
                         contender->contenderName + " is wrong, so it is not measured: " + check.toString());
  for (const tools::OutputCheck &output : check.outputs)
    if (output.error && output.name != tensorName(TensorName::kLse)) // the worst output; attention has one
      contender->relativeError = std::max(contender->relativeError, output.error->relativeRms);
  return contender;
}

Result<double> PlanContender::sample() {
  return timeRun(arena.accelerator, arena.flush, [&] { return arena.job.enqueue(plan.get()); });
}

Result<nlohmann::ordered_json> PlanContender::parts(int samples) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<double>> times;
  for (int i = 0; i < samples; ++i) {
    NSA_RETURN_IF_ERROR(flushCaches(arena.accelerator, arena.flush));
    NSA_ASSIGN_OR_RETURN(std::vector<nsa_part_time> run, arena.job.runTimed(plan.get()));
    for (const nsa_part_time &part : run) {
      if (i == 0)
        order.emplace_back(part.name);
      times[part.name].push_back(part.milliseconds);
    }
  }
  nlohmann::ordered_json result;
  for (const std::string &part : order)
    result["ms_" + part] = median(times[part]);
  return result;
}

std::string PlanContender::fieldOf(std::string_view op, const char *field) const {
  for (const nlohmann::json &launch : description["launches"])
    if (launch.value("operator", "") == op)
      return launch.value(field, "");
  return "";
}

nlohmann::ordered_json PlanContender::facts() const {
  const nlohmann::json &launches = description["launches"], &milliseconds = description["milliseconds"];
  nlohmann::ordered_json facts = {{"relative_error", relativeError}};
  if (launches.size() == 1) {
    facts.update(kernelFacts(launches[0]));
  } else {
    std::string configs;
    for (const nlohmann::json &launch : launches)
      configs += (configs.empty() ? "" : "; ") + launch.value("operator", "") + " " + launch.value("config", "");
    facts["workspace_bytes"] = description.value("workspace_bytes", int64_t{0});
    facts["config"] = configs;
  }
  facts["compile_ms"] = milliseconds.value("compile", 0.0);
  facts["tune_ms"] = milliseconds.value("tune", 0.0);
  return facts;
}

} // namespace nsa::bench
