// The values of a kernel's arguments (View and Scalar, runtime/model/tensors.h), and the sizes that the formulas of a
// grid may use. Thread-safety: values and constants.
#pragma once

#include "runtime/base/manifest.h"
#include "runtime/base/problem.h"
#include "runtime/base/sparse_array.h"
#include "runtime/model/tensors.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace nsa {

inline constexpr int kMaxCoordinates = 4;
using ScalarSlots = std::array<uint64_t, kScalars>; // the value is in the low bytes of its slot
inline void setScalar(ScalarSlots &scalars, Scalar name, int64_t value) {
  scalars[static_cast<size_t>(name)] = static_cast<uint32_t>(value);
}

// The pointer, strides and flags of a view, which a launch writes into the view's argument slots.
struct ViewSlots {
  const void *data = nullptr;                        // nullptr: the tensor is absent
  std::array<int64_t, kMaxCoordinates> strides = {}; // one for each coordinate of the view, in elements
  uint64_t flags = 0;
  // The block table of a view whose rows lie in pages (runtime/base/manifest.h), or nullptr if the view has no pages.
  const int32_t *table = nullptr;
  int64_t tableStride = 0; // from one sequence's row of the table to the next, in elements
  // The extent of the time coordinate of a view [entry, time, head]. 0: the extent is not known or the view has other
  // coordinates, so the view gets no tensor map.
  int64_t rows = 0;

  static ViewSlots make(const void *data, DType dtype, const std::array<int64_t, kMaxCoordinates> &strides,
                        int64_t rows = 0) {
    uint64_t bits = reinterpret_cast<uintptr_t>(data);
    for (int64_t stride : strides)
      bits |= static_cast<uint64_t>(stride * dtypeBytes(dtype));
    const uint64_t flags = (bits % 16 == 0 ? kViewRowsAligned16 : 0) | (dtype == DType::kF32 ? kViewHoldsFloats : 0);
    return {data, strides, flags, nullptr, 0, rows};
  }
};

// An array of views, of which an absent one reads as a view without a tensor.
template <size_t kCount> class SparseViews : private SparseArray<ViewSlots, kCount> {
  using Base = SparseArray<ViewSlots, kCount>;

public:
  const ViewSlots &operator[](size_t i) const {
    const ViewSlots *found = Base::find(i);
    return found ? *found : kAbsent;
  }
  ViewSlots &operator[](size_t i) { return Base::operator[](i); }

private:
  static constexpr ViewSlots kAbsent{};
};

// The sizes that the formula of a kernel's grid may contain. Each field of GridSizes is an upper bound for the calls
// that use the grid; for example, `batch` is the greatest number of sequences.
struct GridSizes {
  int64_t batch = 0;
  int64_t kvHeads = 0;
  int64_t queryHeads = 0;
  int64_t group = 0;
  int64_t maxSeqlenQ = 0;
  int64_t maxSeqlenK = 0;
  int64_t maxTokensQ = 0;
  int64_t maxBlocksC = 0; // compressed blocks of one sequence
  int64_t splits = 1;     // programs that share the keys of a query

  static GridSizes ofMaxima(const Spec &spec, const Maxima &maxima);
  bool operator==(const GridSizes &) const = default;
};
// A name that only the formula of a grid may contain, because its value is known at a launch.
struct GridSizeRule {
  std::string_view name;
  int64_t GridSizes::*size; // null: of the device, its number of multiprocessors
};
// Returns the rule of a name, or nullptr when no grid size has the name.
const GridSizeRule *findGridSize(std::string_view name);

// The sizes of one launch, from which the formula of a grid is computed.
struct LaunchSizes {
  const GridSizes &grid;
  const ScalarSlots *scalars = nullptr; // null: only the grids of operators' kernels, which have no scalars

  int64_t scalar(int index) const { return scalars ? static_cast<int32_t>((*scalars)[static_cast<size_t>(index)]) : 0; }
};

struct KernelCall {
  SparseViews<kViews> views;
  ScalarSlots scalars = {};
  GridSizes grid;

  LaunchSizes sizes() const { return {grid, &scalars}; }

  ViewSlots &operator[](View view) { return views[static_cast<size_t>(view)]; }
  const ViewSlots &operator[](View view) const { return views[static_cast<size_t>(view)]; }
};

} // namespace nsa
