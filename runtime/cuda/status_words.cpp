#include "runtime/cuda/status_words.h"

#include "runtime/base/device_status.h"

#include <algorithm>

namespace nsa::cuda {

namespace {
constexpr size_t kWordsPerSlab = 4096;
} // namespace

StatusWords::~StatusWords() {
  if (!context.inOwnProcess())
    return;
  ContextScope scope(context);
  for (void *slab : slabs)
    context.driver.memFreeHost(slab);
}

Result<int32_t *> StatusWords::acquire() {
  {
    std::lock_guard lock(mutex);
    if (!free.empty()) {
      int32_t *word = free.back();
      free.pop_back();
      return word;
    }
  }
  NSA_RETURN_IF_ERROR(addSlab());
  return acquire();
}

void StatusWords::release(int32_t *word) {
  std::fill_n(word, kDeviceStatusWords, 0);
  std::lock_guard lock(mutex);
  free.push_back(word);
}

Status StatusWords::addSlab() {
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  constexpr size_t kIntegers = kWordsPerSlab * kDeviceStatusWords;
  // One address for host and device: every device served has unified addressing.
  void *slab = nullptr;
  NSA_CUDA_CALL(context.driver, memHostAlloc, (&slab, kIntegers * sizeof(int32_t), kHostMapped));
  auto *words = static_cast<int32_t *>(slab);
  std::fill_n(words, kIntegers, 0);
  std::lock_guard lock(mutex);
  slabs.push_back(slab);
  for (size_t i = kWordsPerSlab; i-- > 0;)
    free.push_back(words + i * kDeviceStatusWords);
  return Status::ok();
}

} // namespace nsa::cuda
