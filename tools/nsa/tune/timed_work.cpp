#include "tools/nsa/tune/timed_work.h"

#include "tools/support/operator_work.h"

#include <nlohmann/json.hpp>

namespace nsa::tools {

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
