// One call's tensors: from what the caller bound to what a kernel's arguments are filled with, with every rule
// of spec.md 2 checked on the way.
// Ownership: borrows the tensors and their data. Thread-safety: values; checking allocates only on an error.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace nsa {

inline constexpr int kMaxTensorRank = 5;

struct Tensor {
  void *data = nullptr;
  DType dtype = DType::kBf16;
  int rank = 0;
  std::array<int64_t, kMaxTensorRank> shape = {};
  std::array<int64_t, kMaxTensorRank> strides = {}; // elements
};

// The numbers are part of the C ABI (nsa_name in nsa/nsa.h).
enum class TensorName : int { kQ, kK, kV, kKWin, kVWin, kOut, kLse, kCuSeqlensQ, kCuSeqlensK };
inline constexpr int kTensorNames = 9;
std::string_view tensorName(TensorName name); // "q", "k_win", "cu_seqlens_q", ...

// What the caller bound, by name.
using Bindings = std::array<std::optional<Tensor>, kTensorNames>;

// What kernels know tensors and numbers by. The names are the manifest's.
enum class View : int { kQ, kK, kV, kOut, kLse, kCuSeqlensQ, kCuSeqlensK, kStatus };
inline constexpr int kViews = 8;
enum class Scalar : int { kSeqlenQ, kSeqlenK, kMaxSeqlenQ, kMaxSeqlenK, kTotalQ, kTotalK, kWindow, kScaleLog2 };
inline constexpr int kScalars = 8;

struct ViewSlots {
  const void *data = nullptr;          // nullptr: absent
  std::array<int64_t, 3> strides = {}; // of the view's coordinates, elements
  uint64_t flags = 0;
};

// Sizes that grid formulas may use.
struct GridSizes {
  int64_t batch = 0;
  int64_t kvHeads = 0;
  int64_t queryHeads = 0;
  int64_t group = 0;
  int64_t maxSeqlenQ = 0;
  int64_t maxSeqlenK = 0;
  int64_t maxTokensQ = 0;

  static GridSizes ofMaxima(const Spec &spec, const Maxima &maxima);
  bool operator==(const GridSizes &) const = default;
};

// What a call is checked against, and all of its arguments that no tensor changes: worked out once, with the plan.
struct CallRules {
  CallRules() = default;
  CallRules(const Spec &spec, const Maxima &maxima);

  Spec spec;
  Maxima maxima;
  std::array<uint64_t, kScalars> scalars = {}; // low bytes first, as a slot; 0 where the tensors say
};

// Checked, and ready to be written into slots.
struct Call {
  std::array<ViewSlots, kViews> views;
  std::array<uint64_t, kScalars> scalars = {}; // as in CallRules, complete
  GridSizes grid;
  bool empty = false; // no query: nothing to launch

  const ViewSlots &view(View name) const { return views[static_cast<size_t>(name)]; }
};

// Checks presence, dtype, rank, shape, maxima, strides and pointers; fills everything but the status view.
Status prepareCall(const CallRules &rules, const Bindings &bindings, Call &call);

// The rules of lengths that kernels check in device memory, for tensors that the host can read.
Status checkHostLengths(const CallRules &rules, const Call &call);

} // namespace nsa
