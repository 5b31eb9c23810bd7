#include "runtime/engine/call/bound_tensors.h"

namespace nsa {

Status BoundTensors::broken(TensorName name, const char *aspect, std::string value, std::string rule,
                            std::string hint) {
  return brokenTensor(tensorName(name), aspect, std::move(value), std::move(rule), std::move(hint));
}

Status BoundTensors::checkExtent(TensorName name, int axis, int64_t expected, std::string_view source,
                                 std::string_view sourceName) const {
  const Tensor &tensor = (*this)[name];
  // The two names are put together for an error alone.
  return tensor.shape[static_cast<size_t>(axis)] == expected
             ? Status::ok()
             : nsa::checkExtent(tensorName(name), tensor, axis, expected, std::string(source).append(sourceName));
}

} // namespace nsa
