// A LaunchClock that uses CUDA events.
// Ownership: the clock borrows the context.
// Thread-safety: one thread at a time may use an EventClock.
#pragma once

#include "runtime/cuda/context.h"
#include "runtime/device/launch_clock.h"

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

} // namespace nsa::cuda
