#include "runtime/cuda/status_words.h"

#include "runtime/base/device_status.h"

namespace nsa::cuda {

namespace {
constexpr size_t kWordsPerSlab = 4096;
constexpr size_t kBytesPerWord = kDeviceStatusWords * sizeof(int32_t);
} // namespace

StatusWords::~StatusWords() {
  if (!context.inOwnProcess())
    return;
  ContextScope scope(context);
  for (DevicePointer slab : slabs)
    context.driver.memFree(slab);
}

Result<void *> StatusWords::acquire() {
  std::lock_guard lock(mutex);
  if (free.empty())
    NSA_RETURN_IF_ERROR(addSlab());
  DevicePointer word = free.back();
  free.pop_back();
  return reinterpret_cast<void *>(word);
}

void StatusWords::release(void *word) {
  if (!word || !context.inOwnProcess())
    return;
  ContextScope scope(context);
  auto pointer = reinterpret_cast<DevicePointer>(word);
  // Cleared before another plan may get it, else that plan would report this one's error; a word that cannot be
  // cleared is not handed out again.
  if (context.driver.memsetD8Async(pointer, 0, kBytesPerWord, stream) != kSuccess ||
      context.driver.streamSynchronize(stream) != kSuccess)
    return;
  std::lock_guard lock(mutex);
  free.push_back(pointer);
}

Status StatusWords::addSlab() {
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  DevicePointer slab = 0;
  NSA_CUDA_CALL(context.driver, memAlloc, (&slab, kWordsPerSlab * kBytesPerWord));
  slabs.push_back(slab);
  NSA_CUDA_CALL(context.driver, memsetD8Async, (slab, 0, kWordsPerSlab * kBytesPerWord, stream));
  NSA_CUDA_CALL(context.driver, streamSynchronize, (stream));
  for (size_t i = kWordsPerSlab; i-- > 0;)
    free.push_back(slab + i * kBytesPerWord);
  return Status::ok();
}

} // namespace nsa::cuda
