#include "tools/nsa/tune/tune_devices.h"

#include "bench/measure/bench_case.h"
#include "bench/measure/machine_facts.h"
#include "bench/measure/plan_contender.h"
#include "runtime/capi/convert.h"
#include "tools/support/operator_work.h"

#include <algorithm>
#include <memory>
#include <sstream>

namespace nsa::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSamples = 5, kWarmUps = 2; // of a duel

// Measures the whole forward pass of NSA against dense attention with the same heads. Some rows of both results are
// compared with the fp64 reference first. The device is opened a second time by the first measurement, for the tensors.
class ForwardDuel {
public:
  ForwardDuel(nsa_engine *engine, std::string device) : engine(engine), device(std::move(device)) {}

  // Both plans run in turns, on sequences of `tokens` tokens.
  Result<Duel> measure(const CrossoverJob &job, int64_t tokens) {
    if (!accelerator) {
      NSA_ASSIGN_OR_RETURN(std::unique_ptr<Accelerator> opened, Accelerator::open(device));
      NSA_ASSIGN_OR_RETURN(flush, bench::flushBuffer(*opened));
      accelerator = std::move(opened);
    }
    const std::vector<int64_t> lengths(static_cast<size_t>(job.batch), tokens);
    std::vector<std::unique_ptr<bench::Arena>> arenas;
    std::vector<std::unique_ptr<bench::PlanContender>> sides;
    for (const Operator op : {job.spec.op, Operator::kDense}) {
      Spec spec = job.spec;
      spec.op = op;
      NSA_ASSIGN_OR_RETURN(std::unique_ptr<bench::Arena> arena,
                           bench::Arena::make(*accelerator, flush.size() ? &flush : nullptr,
                                              drawInputs(spec, {lengths, lengths}, 1), kWarmUps));
      NSA_ASSIGN_OR_RETURN(std::unique_ptr<bench::PlanContender> side,
                           bench::PlanContender::make(std::string(operatorName(op)), engine, *arena));
      arenas.push_back(std::move(arena));
      sides.push_back(std::move(side));
    }
    NSA_ASSIGN_OR_RETURN(const std::vector<bench::Times> times, bench::measureAll(bench::allOf(sides), kSamples));
    return Duel{tokens, times[0].medianMs, times[1].medianMs};
  }

private:
  nsa_engine *engine;
  std::string device;
  std::unique_ptr<Accelerator> accelerator;
  Buffer flush; // bench::flushBuffer
};

// For each type of the report's kernels.
Json roofsOf(const Json &report, const OpenDevice &device, bool measuresRoofs) {
  Json roofs = Json::object();
  if (!device.isGpu() && !measuresRoofs)
    return roofs;
  const std::optional<bench::Roof> processor = device.isGpu() ? std::nullopt : std::optional(bench::processorRoof());
  for (const Json &kernel : report["kernels"]) {
    const std::string dtype = kernel.value("dtype", "");
    if (roofs.contains(dtype))
      continue;
    const std::optional<bench::Roof> roof =
        processor ? processor : bench::roofOf(device.facts["device"].value("name", ""), *parseDType(dtype));
    if (roof)
      roofs[dtype] = {{"tflops", roof->tflops}, {"terabytes_per_second", roof->terabytesPerSecond}};
  }
  return roofs;
}

} // namespace

Result<EngineOptions> resolvedOptions(const EngineSettings &settings) {
  EngineOptions options;
  const nsa_engine_options given = settings.options();
  NSA_RETURN_IF_ERROR(capi::convert(&given, nullptr, options));
  NSA_RETURN_IF_ERROR(options.resolve(EngineOptions::processEnvironment()));
  return options;
}

Result<std::vector<OpenDevice>> openDevices(const std::string &list, EngineSettings settings) {
  std::vector<std::string> names;
  std::stringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');)
    names.push_back(name);
  if (names.empty())
    names.emplace_back();
  NSA_ASSIGN_OR_RETURN(EngineOptions options, resolvedOptions(settings));
  settings.missPolicy = NSA_MISS_DEFAULT; // asked for, tuning is done whatever NSA_MISS says of plans
  settings.compileThreads = std::max(1, options.compileThreads / static_cast<int>(names.size()));
  std::vector<OpenDevice> devices;
  for (const std::string &name : names) {
    settings.device = name;
    NSA_ASSIGN_OR_RETURN(EngineHandle engine, createEngine(settings));
    NSA_ASSIGN_OR_RETURN(nlohmann::json facts, bench::machineFacts(engine.get()));
    NSA_ASSIGN_OR_RETURN(const std::string opened, deviceName(engine.get()));
    devices.push_back({opened, std::move(engine), std::move(facts)});
  }
  return devices;
}

std::vector<TuneDevice> tuneDevices(const std::vector<OpenDevice> &devices) {
  std::vector<TuneDevice> result;
  for (const OpenDevice &device : devices) {
    nsa_engine *engine = device.engine.get();
    const auto duel = std::make_shared<ForwardDuel>(engine, device.name);
    result.push_back(
        {.name = device.name,
         .key = device.key(),
         .isGpu = device.isGpu(),
         .runsStep = device.runsStep(),
         .tuneKernel =
             [engine](const TuneJob &job, double budgetSeconds) {
               return tuneKernel(engine, job.spec, job.maxima, job.problem, budgetSeconds);
             },
         .measureDuel = [duel](const CrossoverJob &job, int64_t tokens) { return duel->measure(job, tokens); }});
  }
  return result;
}

void addMachine(Json &report, const std::vector<OpenDevice> &devices, bool measuresRoofs) {
  for (const char *name : {"date", "version", "source", "processor", "cores"})
    report[name] = devices.front().facts[name];
  for (Json &entry : report["devices"]) {
    const auto device = std::ranges::find(devices, entry.value("device", ""), &OpenDevice::key);
    entry["facts"] = device->facts["device"];
    entry["roofs"] = roofsOf(report, *device, measuresRoofs);
  }
}

std::optional<TimedWork> timedWork(const TuneJob &job, bool isGpu) {
  const std::optional<TimedCall> call = timedCall(job, isGpu);
  if (!call)
    return std::nullopt;
  const auto sequences = static_cast<size_t>(call->batch);
  const PartWork part =
      workByPart(layOut(job.kernel, {std::vector(sequences, call->seqlenQ), std::vector(sequences, call->seqlenK)}))
          .front();
  return TimedWork{*call, part.flops, part.bytes};
}

void addTimedWork(const TuneJob &job, bool isGpu, nlohmann::ordered_json &timed) {
  const std::optional<TimedWork> work = timedWork(job, isGpu);
  timed["flops"] = work->flops;
  timed["bytes"] = work->bytes;
}

} // namespace nsa::tools
