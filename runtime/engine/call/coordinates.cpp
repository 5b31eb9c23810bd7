#include "runtime/engine/call/coordinates.h"

#include "runtime/engine/call/cache_call.h"

namespace nsa {

std::array<int64_t, kMaxCoordinates> coordinateStrides(const Spec &spec, const Operand &operand, const Tensor &tensor) {
  const TensorRule &rule = tensorRule(operand.name);
  std::array<int64_t, kMaxCoordinates> strides = {};
  size_t next = 0;
  if (rule.lead == Lead::kEntries) {
    const int last = tensor.rank - 1;
    return {last == 1 ? 0 : tensor.strideOf(0), tensor.strideOf(last - 1), tensor.strideOf(last)};
  }
  if (rule.lead == Lead::kPositions || rule.lead == Lead::kSequences) {
    strides[next++] = tensor.strideOf(0);
  } else if (rule.lead != Lead::kNone) {
    const bool packedRows = spec.layout == Layout::kPacked && !CacheChecker::isOfCache(rule.lead);
    strides[next++] = packedRows ? 0 : tensor.strideOf(0);
    strides[next++] = tensor.strideOf(packedRows ? 0 : 1);
  }
  const Axis first = rule.axes[0];
  if (first == Axis::kBlockQk || first == Axis::kBlockV)
    strides[next++] = tensor.strideOf(0) * (first == Axis::kBlockQk ? spec.qkDim : spec.vDim);
  const int leading = tensor.rank - rule.axisCount;
  for (int i = 0; i < rule.axisCount - rule.contiguous; ++i)
    strides[next++] = tensor.strideOf(leading + i);
  if (next < static_cast<size_t>(viewRule(operand.view).rank))
    strides[next] = 1;
  return strides;
}

} // namespace nsa
