#include "bench/measure/bench_device.h"

#include "bench/measure/machine_facts.h"

namespace nsa::bench {

Result<BenchDevice> BenchDevice::open(tools::EngineSettings settings) {
  BenchDevice opened;
  settings = tools::withNothingStored(std::move(settings));
  for (const bool tuned : {false, true}) {
    settings.missPolicy = tuned ? NSA_MISS_TUNE : NSA_MISS_DEFAULT;
    Result<tools::EngineHandle> engine = tools::createEngine(settings);
    if (!engine)
      return engine.status();
    opened.engines[tuned] = std::move(*engine);
  }
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

} // namespace nsa::bench
