// Tensors for tuning: two calls over the same device buffers, one as large as the spec's maxima allow within a
// budget (it is timed), one small with drawn, uneven lengths (results are compared on it).
// Ownership: owns the device memory. Thread-safety: one thread at a time.
#pragma once

#include "runtime/engine/call.h"
#include "runtime/engine/device.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

// What one run left in the outputs, widened to float.
struct TuningResult {
  int64_t rowElements = 0; // v_dim
  std::vector<float> out;
  std::vector<float> lse;
};

class TuningInputs {
public:
  static Result<TuningInputs> make(Device &device, const Spec &spec, const Maxima &maxima, uint64_t seed);

  const Bindings &timed() const { return timedBindings; }
  const Bindings &checked() const { return checkedBindings; }
  // Fills the checked call's outputs with NaN, so that an element nobody writes is seen.
  Status poisonOutputs();
  // Reads back the checked call's outputs.
  Result<TuningResult> readChecked();
  // "batch=1 seqlen_q=2048 seqlen_k=2048 tokens_q=2048": what was timed.
  const std::string &shapeText() const { return shape; }

private:
  TuningInputs(Device &device, const Spec &spec) : device(&device), spec(spec) {}

  struct Lengths {
    std::vector<int64_t> q, k; // per sequence
  };
  Status allocate(const Lengths &largest);
  Result<Bindings> bind(const Lengths &lengths);
  Status fillRandom(const DeviceBuffer &buffer, int64_t elements, uint64_t seed);
  int64_t timeExtent(const std::vector<int64_t> &lengths) const;

  Device *device;
  Spec spec;
  DeviceBuffer q, k, v, out, lse;
  int64_t checkedOutBytes = 0;
  int64_t checkedLseBytes = 0;
  std::vector<DeviceBuffer> offsets; // cu_seqlens of both calls
  Bindings timedBindings;
  Bindings checkedBindings;
  std::string shape;
};

} // namespace nsa
