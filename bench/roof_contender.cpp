#include "bench/roof_contender.h"

#include "bench/measure/fma_peak.h"

namespace nsa::bench {

Result<double> PeakContender::sample() {
  const FmaPeak peak = measureFmaPeak(threads, 1);
  if (peak.gflops <= 0)
    return Status::error(ErrorCode::kUnsupported, "this processor has neither AVX-512 nor FMA");
  return threads * 1e3 / peak.gflops;
}

} // namespace nsa::bench
