#include "runtime/cuda/event_clock.h"

namespace nsa::cuda {

EventClock::~EventClock() {
  if (!context.inOwnProcess())
    return;
  ContextScope scope(context);
  for (Event event : events)
    context.driver.eventDestroy(event);
}

Status EventClock::mark(void *stream) {
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  Event event = nullptr;
  NSA_CUDA_CALL(context.driver, eventCreate, (&event, kEventDefault));
  events.push_back(event);
  NSA_CUDA_CALL(context.driver, eventRecord, (event, static_cast<Stream>(stream)));
  return Status::ok();
}

Result<std::vector<double>> EventClock::spans() {
  std::vector<double> result;
  if (events.empty())
    return result;
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  NSA_CUDA_CALL(context.driver, eventSynchronize, (events.back()));
  for (size_t i = 1; i < events.size(); ++i) {
    float milliseconds = 0;
    NSA_CUDA_CALL(context.driver, eventElapsedTime, (&milliseconds, events[i - 1], events[i]));
    result.push_back(milliseconds);
  }
  return result;
}

} // namespace nsa::cuda
