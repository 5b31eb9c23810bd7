#include "runtime/base/signature.h"

namespace nsa {

namespace {

using T = TensorName;

} // namespace

int64_t axisExtent(Axis axis, const Spec &spec) {
  switch (axis) {
#define NSA_AXIS(axis, source, extent)                                                                                 \
  case Axis::axis:                                                                                                     \
    return extent;
#include "runtime/model/tensors.def"
  }
  return 0;
}

bool takes(const Spec &spec, TensorName name) {
  const bool importance = !isWhole(spec.op) || spec.hasBranch(kBranchCmp) || spec.hasBranch(kBranchSel);
  const auto branch = [&](int32_t bit) { return !(fieldsOf(spec.op) & kGates) || spec.hasBranch(bit); };
  switch (name) {
  case T::kPeK:
  case T::kPeV:
    return importance && spec.cmpKind != CmpKind::kMean;
  case T::kWK:
  case T::kWV:
  case T::kBK:
  case T::kBV:
    return importance && spec.cmpKind == CmpKind::kLinear;
  case T::kW1K:
  case T::kW1V:
  case T::kB1K:
  case T::kB1V:
  case T::kW2K:
  case T::kW2V:
  case T::kB2K:
  case T::kB2V:
    return importance && spec.cmpKind == CmpKind::kMlp;
  case T::kKCmp:
  case T::kVCmp:
  case T::kQCmp:
  case T::kKComp:
  case T::kVComp:
  case T::kKCompCache:
  case T::kVCompCache:
  case T::kKRaw:
  case T::kVRaw:
    return importance;
  case T::kOCmp:
  case T::kLseCmp:
    return branch(kBranchCmp);
  case T::kKSel:
  case T::kVSel:
  case T::kOSel:
  case T::kLseSel:
  case T::kKSelCache:
  case T::kVSelCache:
  case T::kBlockList:
    return branch(kBranchSel);
  case T::kKWin:
  case T::kVWin:
  case T::kKWinCache:
  case T::kVWinCache:
  case T::kOWin:
  case T::kLseWin:
    return branch(kBranchWin);
  default:
    return true;
  }
}

} // namespace nsa
