#include "runtime/cuda/events.h"

#include <algorithm>

namespace nsa::cuda {
namespace {
constexpr int kMostRepetitions = 5;
// One long run tells as much as several short ones: what disturbs it is a smaller part of it.
constexpr float kEnoughMs = 5;
} // namespace

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

EventTimer::~EventTimer() {
  if (!context.inOwnProcess())
    return;
  ContextScope scope(context);
  if (start)
    context.driver.eventDestroy(start);
  if (stop)
    context.driver.eventDestroy(stop);
  if (flushBuffer)
    context.driver.memFree(flushBuffer);
}

Status EventTimer::prepare() {
  const Driver &driver = context.driver;
  if (!start)
    NSA_CUDA_CALL(driver, eventCreate, (&start, kEventDefault));
  if (!stop)
    NSA_CUDA_CALL(driver, eventCreate, (&stop, kEventDefault));
  if (!flushBuffer)
    NSA_CUDA_CALL(driver, memAlloc, (&flushBuffer, flushBytes));
  return Status::ok();
}

Result<double> EventTimer::time(const std::function<Status(void *stream)> &launch) {
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  NSA_RETURN_IF_ERROR(prepare());
  const Driver &driver = context.driver;
  float milliseconds[kMostRepetitions];
  int count = 0;
  float total = 0;
  while (count < kMostRepetitions && total < kEnoughMs) {
    float &elapsed = milliseconds[count++];
    NSA_CUDA_CALL(driver, memsetD8Async, (flushBuffer, 0, flushBytes, stream));
    NSA_CUDA_CALL(driver, eventRecord, (start, stream));
    NSA_RETURN_IF_ERROR(launch(stream));
    NSA_CUDA_CALL(driver, eventRecord, (stop, stream));
    NSA_CUDA_CALL(driver, eventSynchronize, (stop));
    NSA_CUDA_CALL(driver, eventElapsedTime, (&elapsed, start, stop));
    total += elapsed;
  }
  std::sort(milliseconds, milliseconds + count);
  return static_cast<double>(milliseconds[count / 2]);
}

} // namespace nsa::cuda
