// The status words of plans, in host memory that the device addresses too. A kernel accesses its status word only to
// report an error, so a launch without errors causes no traffic on the bus. The host reads and clears a status word
// without a driver call. Status words come from slabs. The first slab (array) of status words is allocated when the
// device is opened, so that a plan can be made during a stream capture.
// Ownership: a StatusWords borrows the context.
// Thread-safety: all functions lock one mutex; nsa_run calls none of them.
#pragma once

#include "runtime/cuda/context.h"

#include <cstdint>
#include <mutex>
#include <vector>

namespace nsa::cuda {

class StatusWords {
public:
  explicit StatusWords(const PrimaryContext &context) : context(context) {}
  ~StatusWords();

  // Returns a status word that is zero. `acquire` allocates a further slab of status words when no status word is free.
  Result<int32_t *> acquire();
  void release(int32_t *word);
  Status addSlab();

private:
  const PrimaryContext &context;
  std::mutex mutex;
  std::vector<void *> slabs;
  std::vector<int32_t *> free;
};

} // namespace nsa::cuda
