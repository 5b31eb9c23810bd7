#include "runtime/engine/call/tensor_checks.h"

#include "runtime/base/text.h"
#include "runtime/engine/call/shared_elements.h"

#include <algorithm>
#include <limits>
#include <span>

namespace nsa {

namespace {

constexpr const char *kStridesHint = "strides are in elements, not bytes";

std::string listText(const std::array<int64_t, kMaxTensorRank> &values, int count) {
  const std::span listed(values.data(), static_cast<size_t>(count));
  return "[" + joined(listed, ", ", [](int64_t value) { return std::to_string(value); }) + "]";
}

bool isEmpty(const Tensor &tensor) {
  return std::find(tensor.shape.begin(), tensor.shape.begin() + tensor.rank, 0) != tensor.shape.begin() + tensor.rank;
}

} // namespace

Status brokenTensor(std::string_view name, std::string_view aspect, std::string value, std::string rule,
                    std::string hint) {
  return Status::invalid(std::string(name).append(aspect), std::move(value), std::move(rule), std::move(hint));
}

std::string shapeText(const Tensor &tensor) { return listText(tensor.shape, tensor.rank); }

namespace {

// Of a tensor whose dtype was checked.
Status checkMemory(std::string_view name, const Tensor &t, int rank) {
  if (t.rank != rank)
    return brokenTensor(name, ".rank", std::to_string(t.rank), "must be " + std::to_string(rank));
  int64_t end = 0; // bytes
  for (size_t axis = 0; axis < static_cast<size_t>(rank); ++axis) {
    int64_t extent = t.shape[axis];
    int64_t stride = t.strides[axis];
    // Kernels count rows in 32 bits; offsets in memory are 64 bits wide.
    if (extent < 0 || extent > std::numeric_limits<int32_t>::max())
      return brokenTensor(name, ".shape", shapeText(t), "each extent must be from 0 to 2^31 - 1");
    if (extent <= 1)
      continue; // the stride is never used
    if (stride < 0)
      return brokenTensor(name, ".strides", std::to_string(stride), "must not be negative");
    // No element is wider than 4 bytes. A product, as a division for each axis is what a call would feel.
    if (int64_t bytes; __builtin_mul_overflow(stride, extent * 4, &bytes) || __builtin_add_overflow(end, bytes, &end))
      return brokenTensor(name, ".strides", std::to_string(stride), "the last element's byte offset must fit 63 bits",
                          kStridesHint);
  }
  if (!t.data && !isEmpty(t))
    return brokenTensor(name, ".data", "null", "must point to " + shapeText(t) + " elements");
  auto address = reinterpret_cast<uintptr_t>(t.data);
  if (address % static_cast<uintptr_t>(dtypeBytes(t.dtype)) != 0)
    return brokenTensor(name, ".data", addressText(t.data),
                        "must be a multiple of the element's " + std::to_string(dtypeBytes(t.dtype)) + " bytes");
  return Status::ok();
}

} // namespace

Status checkTensor(std::string_view name, const Tensor &t, DType dtype, int rank) {
  if (t.dtype != dtype)
    return brokenTensor(name, ".dtype", std::string(dtypeName(t.dtype)), "must be " + std::string(dtypeName(dtype)));
  if (t.accumulate)
    return brokenTensor(name, ".accumulate", "1",
                        "must be 0, because a call adds only to the gradients that it writes");
  return checkMemory(name, t, rank);
}

Status checkGradient(std::string_view name, const Tensor &t, DType io, int rank) {
  if (t.dtype != io && t.dtype != DType::kF32)
    return brokenTensor(name, ".dtype", std::string(dtypeName(t.dtype)),
                        io == DType::kF32 ? "must be fp32"
                                          : "must be " + std::string(dtypeName(io)) + ", the io type, or fp32");
  return checkMemory(name, t, rank);
}

Status checkExtent(std::string_view name, const Tensor &t, int axis, int64_t expected, std::string_view source) {
  if (t.shape[static_cast<size_t>(axis)] == expected)
    return Status::ok();
  return brokenTensor(name, ".shape", shapeText(t),
                      "dimension " + std::to_string(axis) + " must be " + std::to_string(expected) + " (" +
                          std::string(source) + ")");
}

Status checkDisjoint(std::string_view name, const Tensor &t) {
  if (isEmpty(t) || !sharesElements(t))
    return Status::ok();
  return brokenTensor(name, ".strides", listText(t.strides, t.rank),
                      "elements of an output must not share memory, and with the shape " + shapeText(t) + " some do",
                      kStridesHint);
}

Status checkApart(std::string_view name, const Tensor &gradient, std::string_view otherName, const Tensor &other) {
  if (isEmpty(gradient) || isEmpty(other) || liesApart(gradient, other))
    return Status::ok();
  return brokenTensor(name, ".data", addressText(gradient.data),
                      "a gradient must not share memory with " + std::string(otherName) + ", which is at " +
                          addressText(other.data));
}

Status checkContiguous(std::string_view name, const Tensor &t, int lastAxis) {
  const auto axis = static_cast<size_t>(lastAxis);
  if (t.shape[axis] <= 1 || t.strides[axis] == 1)
    return Status::ok();
  return brokenTensor(name, ".strides", std::to_string(t.strides[axis]),
                      "the last dimension must be contiguous (stride 1)", kStridesHint);
}

} // namespace nsa
