// The enumerations of a spec's fields and of element types, and the names of their enumerators.
// Thread-safety: constants and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace nsa {

enum class CmpKind : int { kMean = 0, kLinear = 1, kMlp = 2 };
enum class Activation : int { kRelu = 0, kGelu = 1, kSilu = 2 };
enum class RotaryStyle : int { kHalf = 0, kInterleaved = 1 };
enum class Gate : int { kValue = 0, kSigmoid = 1, kSoftmax = 2 };
// The numbers of the types up to kI32 are part of the C ABI (nsa_dtype).
enum class DType : int { kBf16 = 0, kF16 = 1, kF32 = 2, kI32 = 3, kFp8E4M3 = 4, kFp8E5M2 = 5 };
enum class Layout : int { kDense = 0, kPacked = 1 };

// The names in the order of the enumerators: one list makes printing, parsing, error texts and problem keys.
using Names = std::span<const std::string_view>;
inline constexpr std::string_view kCmpKindNames[] = {"mean", "linear", "mlp"};
inline constexpr std::string_view kActivationNames[] = {"relu", "gelu", "silu"};
inline constexpr std::string_view kGateNames[] = {"value", "sigmoid", "softmax"};
inline constexpr std::string_view kRotaryStyleNames[] = {"half", "interleaved"};
inline constexpr std::string_view kDTypeNames[] = {"bf16", "fp16", "fp32", "int32", "fp8_e4m3", "fp8_e5m2"};
inline constexpr std::string_view kLayoutNames[] = {"dense", "packed"};

constexpr std::string_view dtypeName(DType dtype) { return kDTypeNames[static_cast<int>(dtype)]; }
constexpr std::string_view layoutName(Layout layout) { return kLayoutNames[static_cast<int>(layout)]; }
constexpr std::string_view cmpKindName(CmpKind kind) { return kCmpKindNames[static_cast<int>(kind)]; }
constexpr std::string_view activationName(Activation activation) {
  return kActivationNames[static_cast<int>(activation)];
}
constexpr std::string_view gateName(Gate gate) { return kGateNames[static_cast<int>(gate)]; }
constexpr std::string_view rotaryStyleName(RotaryStyle style) { return kRotaryStyleNames[static_cast<int>(style)]; }

// The branches of NSA, as bits of Spec::branches; gates and branch outputs are in the order cmp, sel, win.
inline constexpr int32_t kBranchCmp = 1, kBranchSel = 2, kBranchWin = 4, kAllBranches = 7;

} // namespace nsa
