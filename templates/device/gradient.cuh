// View<Gradient<T>, R>: a View of a result whose element type is said by the caller, call by call: T, or float. The
// caller also says whether a result replaces what the memory holds, or is added to it. Results are floats. What is
// added is added as a float, and is rounded once where the elements are T.
//
// A result of T that replaces is the usual case, and has the accesses of a plain View. All other results are stored by
// one loop, pair by pair, which is short code: it is compiled at each cold start, and waits for memory.
#pragma once

#include "pair.cuh"
#include "view.cuh"

namespace nsa {

template <typename T> struct Gradient; // says a type, and has no value

template <typename T, int32 kRank> struct View<Gradient<T>, kRank> : View<T, kRank> {
  using Plain = View<T, kRank>;

  NSA_DEVICE bool holds_floats() const { return kSameType<T, float> || (this->flags & 2) != 0; }
  NSA_DEVICE bool adds() const { return (this->flags & 4) != 0; }
  // Returns whether results of T replace what the memory holds.
  NSA_DEVICE bool is_plain() const { return (this->flags & (kSameType<T, float> ? 4 : 6)) == 0; }
  NSA_DEVICE const Plain &plain() const { return *this; }

  NSA_DEVICE void set(int64 offset, float value) const {
    if (holds_floats())
      set_in(reinterpret_cast<float *>(this->data) + offset, value);
    else
      set_in(this->data + offset, value);
  }
  // Stores the first `elements` columns of a pair, as store_pair does.
  NSA_DEVICE void set_pair(int64 offset, Pair<float> pair, int32 elements) const {
    if (holds_floats())
      set_pair_in(reinterpret_cast<float *>(this->data) + offset, pair, elements);
    else
      set_pair_in(this->data + offset, pair, elements);
  }

private:
  template <typename U> NSA_DEVICE void set_in(U *target, float value) const {
    *target = to<U>(adds() ? to_float(*target) + value : value);
  }
  template <typename U> NSA_DEVICE void set_pair_in(U *target, Pair<float> pair, int32 elements) const {
    const bool together = this->rows_aligned();
    float low = pair.get(0), high = pair.get(1);
    if (adds()) {
      const Pair<U> held = load_pair(target, elements, together);
      low += to_float(held.get(0));
      high += to_float(held.get(1));
    }
    store_pair(target, Pair<U>::make(low, high), elements, together);
  }
};

static_assert(sizeof(View<Gradient<bf16>, 3>) == sizeof(View<bf16, 3>), "a view of gradients takes a view's slots");

} // namespace nsa
