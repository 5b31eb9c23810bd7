// map<Result>(function, inputs...) applies `function` elementwise to fragments and row vectors. A row vector among the
// inputs of a map acts as a fragment whose columns all equal the row vector. `function` has one parameter for the
// element of each input. `function` may have further parameters: the row number and the column number if Result is a
// fragment, or the row number if Result is a row vector. The header ptx_math.cuh has functions that `function` may
// call. If Result has 16-bit elements, `function` may return float, and one instruction then rounds the elements of two
// columns.
#pragma once

#include "fragment.cuh"
#include "ptx_math.cuh"

namespace nsa {

template <typename Function, typename... Elements>
NSA_DEVICE auto call_with_row(const Function &function, int32 row, Elements... elements) {
  if constexpr (requires { function(elements..., row); })
    return function(elements..., row);
  else
    return function(elements...);
}

template <typename Function, typename... Elements>
NSA_DEVICE auto call_with_indices(const Function &function, int32 row, int32 column, Elements... elements) {
  if constexpr (requires { function(elements..., row, column); })
    return function(elements..., row, column);
  else
    return function(elements...);
}

template <typename Result, typename Function, typename... Inputs>
NSA_DEVICE Result map(const Function &function, const Inputs &...inputs) {
  static_assert(((Inputs::kRows == Result::kRows && Inputs::kWarps == Result::kWarps) && ...),
                "inputs and result of a map have the same rows on the same warps");
  Result result;
#pragma unroll
  for (int32 slab = 0; slab < Result::kSlabs; ++slab) {
    if constexpr (kIsRowVector<Result>) {
#pragma unroll
      for (int32 half = 0; half < 2; ++half)
        result.values[slab][half] = call_with_row(function, Result::row(slab, half), inputs.values[slab][half]...);
    } else {
#pragma unroll
      for (int32 tile = 0; tile < Result::kTiles; ++tile)
#pragma unroll
        for (int32 half = 0; half < 2; ++half) {
          const int32 row = Result::row(slab, half);
          const auto low =
              call_with_indices(function, row, Result::column(tile, 0), inputs.get(slab, tile, half, 0)...);
          const auto high =
              call_with_indices(function, row, Result::column(tile, 1), inputs.get(slab, tile, half, 1)...);
          result.pairs[slab][tile][half] = Pair<typename Result::Element>::make(low, high);
        }
    }
  }
  return result;
}

// Returns a tile whose elements all have the same value.
template <typename Result, typename T> NSA_DEVICE Result splat(T value) {
  return map<Result>([value] { return value; });
}

} // namespace nsa
