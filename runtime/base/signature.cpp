#include "runtime/base/signature.h"

namespace nsa {

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
  const bool hasGates = (fieldsOf(spec.op) & kGates) != 0, hasPhi = !hasGates || spec.compresses();
  const auto branch = [&](int32_t bit) { return !hasGates || spec.hasBranch(bit); };
  switch (tensorRule(name).part) {
  case TensorPart::kWhole:
    return true;
  case TensorPart::kImportance:
    return hasPhi;
  case TensorPart::kCmp:
    return branch(kBranchCmp);
  case TensorPart::kSel:
    return branch(kBranchSel);
  case TensorPart::kWin:
    return branch(kBranchWin);
  case TensorPart::kPhiNotMean:
    return hasPhi && spec.cmpKind != CmpKind::kMean;
  case TensorPart::kPhiLinear:
    return hasPhi && spec.cmpKind == CmpKind::kLinear;
  case TensorPart::kPhiMlp:
    return hasPhi && spec.cmpKind == CmpKind::kMlp;
  case TensorPart::kKeyOffset:
    return spec.keyOffset && (fieldsOf(spec.op) & kKeyOffsetField);
  }
  return true;
}

} // namespace nsa
