#include "bench/bench_device.h"

#include "bench/machine_facts.h"
#include "runtime/engine/routes.h"

namespace nsa::bench {

Result<BenchDevice> BenchDevice::open(tools::EngineSettings settings) {
  BenchDevice opened;
  settings = tools::withNothingStored(std::move(settings));
  auto make = [&settings](tools::EngineHandle &engine, nsa_miss_policy policy, std::string variant) -> Status {
    settings.missPolicy = policy;
    settings.forceVariant = std::move(variant);
    Result<tools::EngineHandle> made = tools::createEngine(settings);
    if (made)
      engine = std::move(*made);
    return made.status();
  };
  const std::string variant = settings.forceVariant;
  NSA_RETURN_IF_ERROR(make(opened.guessing, NSA_MISS_DEFAULT, variant));
  NSA_RETURN_IF_ERROR(make(opened.tuning, NSA_MISS_TUNE, variant));
  NSA_RETURN_IF_ERROR(make(opened.generating, NSA_MISS_DEFAULT, std::string(kTiledTemplate)));
  Result<std::string> name = tools::deviceName(opened.engine(false));
  if (!name)
    return name.status();
  opened.deviceText = std::move(*name);
  Result<std::unique_ptr<tools::Accelerator>> device = tools::Accelerator::open(opened.deviceText);
  if (!device)
    return device.status();
  opened.device = std::move(*device);
  Result<tools::Buffer> buffer = flushBuffer(*opened.device);
  if (!buffer)
    return buffer.status();
  opened.flushed = std::move(*buffer);
  return opened;
}

Result<nlohmann::json> BenchDevice::facts() const { return machineFacts(engine(false)); }

Result<std::vector<std::unique_ptr<PlanContender>>> BenchDevice::contenders(const Arena &arena, bool tuned) const {
  std::vector<std::unique_ptr<PlanContender>> made;
  for (const bool tunes : {false, true}) {
    if (tunes && !tuned)
      continue;
    Result<std::unique_ptr<PlanContender>> plan =
        PlanContender::make(tunes ? "nsa tuned" : "nsa default", engine(tunes), arena);
    if (!plan)
      return plan.status();
    made.push_back(std::move(*plan));
  }
  return made;
}

Result<std::unique_ptr<PlanContender>> BenchDevice::generated(const Arena &arena) const {
  return PlanContender::make("nsa generated", generating.get(), arena);
}

} // namespace nsa::bench
