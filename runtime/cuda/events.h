// Measures times of launches with CUDA events: EventClock for the parts of a plan, and EventTimer for the tuner.
// Ownership: both borrow the context, and the timer the stream.
// Thread-safety: one thread at a time may use an EventClock or an EventTimer.
#pragma once

#include "runtime/cuda/context.h"
#include "runtime/device/device.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace nsa::cuda {

class EventClock final : public LaunchClock {
public:
  explicit EventClock(const PrimaryContext &context) : context(context) {}
  ~EventClock() override;

  Status mark(void *stream) override;
  Result<std::vector<double>> spans() override;

private:
  const PrimaryContext &context;
  std::vector<Event> events;
};

// Before each repetition the timer overwrites a buffer larger than L2, so that every candidate begins with the same
// cold cache.
class EventTimer {
public:
  // The resolution of the times that cuEventElapsedTime returns, as the driver's manual gives it.
  static constexpr double kResolutionMs = 5e-4;

  EventTimer(const PrimaryContext &context, Stream stream, size_t flushBytes)
      : context(context), stream(stream), flushBytes(flushBytes) {}
  ~EventTimer();

  // Returns the median milliseconds of one `launch` on the timer's stream.
  Result<double> time(const std::function<Status(void *stream)> &launch);

private:
  Status prepare();

  const PrimaryContext &context;
  Stream stream;
  size_t flushBytes;
  DevicePointer flushBuffer = 0;
  Event start = nullptr;
  Event stop = nullptr;
};

} // namespace nsa::cuda
