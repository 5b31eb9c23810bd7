#include "compiler/passes/FirstFit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace nsa::tile {

FirstFit placeFirstFit(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int> order, int64_t alignment,
                       llvm::function_ref<bool(int, int)> meets) {
  FirstFit fit;
  fit.offsets.assign(sizes.size(), 0);
  for (auto [number, current] : llvm::enumerate(order)) {
    llvm::SmallVector<int> neighbours;
    for (int placed : order.take_front(number))
      if (meets(current, placed))
        neighbours.push_back(placed);
    llvm::sort(neighbours, [&](int a, int b) { return fit.offsets[a] < fit.offsets[b]; });
    int64_t offset = 0;
    for (int neighbour : neighbours) {
      if (offset + sizes[current] <= fit.offsets[neighbour])
        break;
      int64_t past = static_cast<int64_t>(llvm::alignTo(fit.offsets[neighbour] + sizes[neighbour], alignment));
      offset = std::max(offset, past);
    }
    fit.offsets[current] = offset;
    fit.bytes = std::max(fit.bytes, offset + sizes[current]);
  }
  return fit;
}

} // namespace nsa::tile
