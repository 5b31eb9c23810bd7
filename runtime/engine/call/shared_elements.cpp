#include "runtime/engine/call/shared_elements.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace nsa {

namespace {

// The axes along which there is more than one element, in descending order of strides. Two elements share a place where
// the sum of step * stride over the axes is zero for steps that are not all zero. A step is the difference of two
// coordinates, so it is smaller than the extent of its axis.
class StepSearch {
public:
  explicit StepSearch(const Tensor &tensor) {
    for (size_t i = 0; i < static_cast<size_t>(tensor.rank); ++i) {
      if (tensor.shape[i] <= 1)
        continue;
      size_t at = count++;
      for (; at > 0 && axes[at - 1].stride < tensor.strides[i]; --at)
        axes[at] = axes[at - 1];
      axes[at] = {.stride = tensor.strides[i], .mostSteps = tensor.shape[i] - 1};
    }
    for (size_t at = count; at-- > 0;)
      spans[at] = spans[at + 1] + axes[at].mostSteps * axes[at].stride;
  }

  bool finds() {
    if (count > 0 && axes[count - 1].stride == 0)
      return true;
    // Of a solution and its negative, one has a positive first step. In a tensor whose rows lie apart, the inner axes
    // do not reach over one step, and no loop has a turn.
    for (size_t first = 0; first < count; ++first)
      for (int64_t step = 1; step <= std::min(axes[first].mostSteps, spans[first + 1] / axes[first].stride); ++step)
        if (reaches(first + 1, step * axes[first].stride))
          return true;
        else if (stepsLeft <= 0)
          return false;
    return false;
  }

private:
  struct Axis {
    int64_t stride, mostSteps;
  };

  // Whether the axes from `at` on can make up the distance.
  bool reaches(size_t at, int64_t distance) {
    --stepsLeft;
    if (distance > spans[at] || distance < -spans[at])
      return false;
    if (distance == 0)
      return true;
    const Axis &axis = axes[at];
    if (at + 1 == count)
      return distance % axis.stride == 0; // the span holds the step within its extent
    // The inner axes must make up what the steps leave.
    const int64_t nearest = distance / axis.stride;
    const int64_t more = spans[at + 1] / axis.stride + 1;
    const int64_t last = std::min(axis.mostSteps, nearest + more);
    for (int64_t step = std::max(-axis.mostSteps, nearest - more); step <= last && stepsLeft > 0; ++step)
      if (reaches(at + 1, distance - step * axis.stride))
        return true;
    return false;
  }

  std::array<Axis, kMaxTensorRank> axes = {};
  size_t count = 0;
  std::array<int64_t, kMaxTensorRank + 1> spans = {}; // how far the axes from here on reach
  int stepsLeft = 4096;                               // some tens of microseconds
};

uintptr_t beginOf(const Tensor &tensor) { return reinterpret_cast<uintptr_t>(tensor.data); }
// The address behind the last element.
uintptr_t endOf(const Tensor &tensor) {
  int64_t elements = 1;
  for (size_t i = 0; i < static_cast<size_t>(tensor.rank); ++i)
    if (tensor.shape[i] > 1) // else the stride is never used
      elements += (tensor.shape[i] - 1) * tensor.strides[i];
  return beginOf(tensor) + static_cast<uintptr_t>(elements * dtypeBytes(tensor.dtype));
}

// What a tensor covers, in bytes.
class Cover {
public:
  explicit Cover(const Tensor &tensor) : begin(beginOf(tensor)), element(dtypeBytes(tensor.dtype)) {
    for (size_t i = 0; i < static_cast<size_t>(tensor.rank); ++i)
      if (tensor.shape[i] > 1)
        axes[count++] = {.stride = tensor.strides[i] * element, .mostSteps = tensor.shape[i] - 1};
  }

  // The bytes from the first to the last one, over axes with smaller strides than `period` alone.
  int64_t width(int64_t period) const {
    int64_t bytes = element;
    for (const Axis &axis : std::span(axes).first(count))
      if (axis.stride < period)
        bytes += axis.mostSteps * axis.stride;
    return bytes;
  }
  // Whether the tensor covers the same bytes of each period.
  bool hasPeriod(int64_t period) const {
    return std::ranges::all_of(std::span(axes).first(count),
                               [&](const Axis &axis) { return axis.stride < period || axis.stride % period == 0; });
  }
  // Whether both have the period of one of the axes, and cover other bytes of it.
  bool alternatesWith(const Cover &other) const {
    return std::ranges::any_of(std::span(axes).first(count), [&](const Axis &axis) {
      const int64_t period = axis.stride;
      if (period <= 0 || !hasPeriod(period) || !other.hasPeriod(period))
        return false;
      const auto unsignedPeriod = static_cast<uintptr_t>(period);
      const auto distance = static_cast<int64_t>(
          (other.begin % unsignedPeriod + unsignedPeriod - begin % unsignedPeriod) % unsignedPeriod);
      return distance >= width(period) && period - distance >= other.width(period);
    });
  }

private:
  struct Axis {
    int64_t stride, mostSteps;
  };
  uintptr_t begin;
  int64_t element;
  std::array<Axis, kMaxTensorRank> axes = {};
  size_t count = 0;
};

} // namespace

bool liesApart(const Tensor &a, const Tensor &b) {
  if (beginOf(a) >= endOf(b) || beginOf(b) >= endOf(a)) // as most do, so this comes first
    return true;
  const Cover first(a), second(b);
  return first.alternatesWith(second) || second.alternatesWith(first);
}

bool sharesElements(const Tensor &tensor) { return StepSearch(tensor).finds(); }

} // namespace nsa
