// Device memory for the status words of plans, handed out from slabs made at start, so that a plan can be
// made while a stream captures (cuMemAlloc is forbidden then).
// Ownership: borrows context and stream. Thread-safety: one mutex; never on the launch path.
#pragma once

#include "runtime/cuda/context.h"

#include <mutex>
#include <vector>

namespace nsa::cuda {

class StatusWords {
public:
  // `stream` must not synchronise with the legacy stream: words are cleared on it when they come back.
  StatusWords(const PrimaryContext &context, Stream stream) : context(context), stream(stream) {}
  ~StatusWords();

  // Adds a slab when no word is free.
  Result<void *> acquire();
  void release(void *word);

private:
  Status addSlab(); // with the mutex held

  const PrimaryContext &context;
  Stream stream;
  std::mutex mutex;
  std::vector<DevicePointer> slabs;
  std::vector<DevicePointer> free;
};

} // namespace nsa::cuda
