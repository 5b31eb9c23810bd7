#include "bench/measure/bench_device.h"

namespace nsa::bench {

Result<BenchDevice> BenchDevice::open(tools::EngineSettings settings) {
  BenchDevice opened;
  settings = tools::withNothingStored(std::move(settings));
  for (const bool tuned : {false, true}) {
    settings.missPolicy = tuned ? NSA_MISS_TUNE : NSA_MISS_DEFAULT;
    NSA_ASSIGN_OR_RETURN(opened.engines[tuned], tools::createEngine(settings));
  }
  NSA_ASSIGN_OR_RETURN(opened.deviceText, tools::deviceName(opened.engine(false)));
  NSA_ASSIGN_OR_RETURN(opened.device, tools::Accelerator::open(opened.deviceText));
  NSA_ASSIGN_OR_RETURN(opened.flushed, flushBuffer(*opened.device));
  return opened;
}

Result<std::vector<std::unique_ptr<PlanContender>>> BenchDevice::contenders(Arena &arena, bool tuned) const {
  std::vector<std::unique_ptr<PlanContender>> made;
  for (const bool tunes : {false, true}) {
    if (tunes && !tuned)
      continue;
    NSA_ASSIGN_OR_RETURN(std::unique_ptr<PlanContender> plan,
                         PlanContender::make(tunes ? "nsa tuned" : "nsa default", engine(tunes), arena));
    made.push_back(std::move(plan));
  }
  return made;
}

} // namespace nsa::bench
