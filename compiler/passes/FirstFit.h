// Gives buffers places in one piece of memory, so that buffers which are alive together do not overlap. The plans of
// shared memory (PlanBuffers) and of scratch memory (compiler/cpu/BufferPlan.h) use it.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace nsa::tile {

struct FirstFit {
  llvm::SmallVector<int64_t> offsets; // by buffer, multiples of the alignment
  int64_t bytes = 0;                  // from the start of the memory to the end of the last buffer
};

// Places buffers in the order of `order`, each at the first place where it overlaps no placed buffer that it meets.
// `sizes` has the bytes of all buffers; a buffer that is not in `order` gets the offset 0 and takes no memory.
FirstFit placeFirstFit(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int> order, int64_t alignment,
                       llvm::function_ref<bool(int, int)> meets);

} // namespace nsa::tile
