// Gradients share memory with no other tensor of their call, but for the gradient of `rotate`, which may replace its
// input.
#include "tests/unit/runtime/test_call.h"

#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <utility>

namespace nsa::test {
namespace {

using T = TensorName;

TEST(GradientOverlap, IsRefused) {
  TestCall call(Operator::kWindowBwd, Layout::kDense);
  const auto refusal = [&](T gradient, void *data) {
    void *before = std::exchange(call.bindings[gradient].data, data);
    const Status status = call.check();
    call.bindings[gradient].data = before;
    return status.isOk() ? "" : status.error().field + " " + status.error().rule.substr(0, 48);
  };
  EXPECT_EQ(refusal(T::kDQ, call.bindings[T::kQ].data), "d_q.data a gradient must not share memory with q, which i");
  EXPECT_EQ(refusal(T::kDKWin, call.bindings[T::kDVWin].data),
            "d_k_win.data a gradient must not share memory with d_v_win, w");
  // Slices of one array, [batch, tokens, d_k and d_v, ..].
  Tensor &dK = call.bindings[T::kDKWin], &dV = call.bindings[T::kDVWin];
  const int64_t row = dK.shape[2] * dK.shape[3] + dV.shape[2] * dV.shape[3];
  for (Tensor *slice : {&dK, &dV}) {
    slice->strides[1] = row;
    slice->strides[0] = row * slice->shape[1];
  }
  const auto element = static_cast<size_t>(dtypeBytes(dK.dtype));
  dV.data = static_cast<std::byte *>(dK.data) + static_cast<size_t>(dK.shape[2] * dK.shape[3]) * element;
  EXPECT_TRUE(call.check().isOk()) << call.check().toString();
  dV.data = static_cast<std::byte *>(dV.data) - 16;
  EXPECT_EQ(call.check().error().field, "d_k_win.data");
}

// The error of a call after a change of one tensor, without the addresses; "" if there is none.
std::string refusalOf(TestCall &call, T name, const std::function<void(Tensor &)> &change) {
  const Tensor before = call.bindings[name];
  change(call.bindings[name]);
  const Status status = call.check();
  call.bindings[name] = before;
  return status.isOk() ? "" : status.error().field + " " + status.error().rule.substr(0, status.error().rule.find(','));
}

TEST(GradientOverlap, WithLengthsIsRefused) {
  for (const Operator op : {Operator::kDenseBwd, Operator::kCompressBwd, Operator::kNsaBwd}) {
    TestCall call(op, Layout::kPacked);
    const T gradient = op == Operator::kDenseBwd ? T::kDVWin : T::kDVCmp;
    for (const auto &[lengths, data] :
         {std::pair(T::kCuSeqlensQ, call.offsetsQ.data()), {T::kCuSeqlensK, call.offsetsK.data()}})
      EXPECT_EQ(refusalOf(call, gradient, [&](Tensor &t) { t.data = data; }),
                std::string(tensorName(gradient)) + ".data a gradient must not share memory with " +
                    std::string(tensorName(lengths)));
  }
}

// The gradient of `rotate` replaces its input element by element, and may lie on no other tensor.
TEST(GradientOverlap, OfRotateMayReplaceItsInput) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
    TestCall call(Operator::kRotateBwd, layout);
    for (const T angle : {T::kCos, T::kSin})
      call.set(angle, TestCall::placeOf(angle), DType::kF32, {call.maxima.seqlenK, call.spec.qkDim / 2});
    ASSERT_TRUE(call.check().isOk()) << call.check().toString();
    const Tensor x = call.bindings[T::kX];
    const auto time = static_cast<size_t>(x.rank) - 3;
    const std::string onInput = "out.data a gradient must not share memory with x";
    const auto refusal = [&](const std::function<void(Tensor &)> &change) { return refusalOf(call, T::kOut, change); };
    EXPECT_EQ(refusal([&](Tensor &t) { t.data = x.data; }), "");
    EXPECT_EQ(refusal([&](Tensor &t) { t.data = static_cast<std::byte *>(x.data) + x.strides[time] * 2; }), onInput);
    EXPECT_EQ(refusal([&](Tensor &t) {
                t.data = x.data;
                for (size_t axis = 0; axis <= time; ++axis)
                  t.strides[axis] *= 2;
              }),
              onInput);
    EXPECT_EQ(refusal([&](Tensor &t) {
                t.data = x.data;
                t.dtype = DType::kF32;
              }),
              onInput);
    EXPECT_EQ(refusal([&](Tensor &t) {
                t.data = x.data;
                t.accumulate = true;
              }),
              onInput);
    EXPECT_EQ(refusal([&](Tensor &t) { t.data = call.bindings[T::kCos].data; }),
              "out.data a gradient must not share memory with cos");
  }
}

} // namespace
} // namespace nsa::test
