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

namespace {

// Whether a branch is on that reads the part. An operator without branches reads all of them.
bool isReached(const Spec &spec, TensorPart part) {
  if (!(fieldsOf(spec.op) & kGates))
    return true;
  switch (part) {
  case TensorPart::kImportance:
  case TensorPart::kPhiNotMean:
  case TensorPart::kPhiLinear:
  case TensorPart::kPhiMlp:
    return spec.compresses();
  case TensorPart::kCmp:
    return spec.hasBranch(kBranchCmp);
  case TensorPart::kSel:
  case TensorPart::kListIndex:
    return spec.hasBranch(kBranchSel);
  case TensorPart::kWin:
    return spec.hasBranch(kBranchWin);
  case TensorPart::kWhole:
  case TensorPart::kKeyOffset:
    return true;
  }
  return true;
}

// Whether the fields other than `branches` ask for the part.
bool isAskedFor(const Spec &spec, TensorPart part) {
  switch (part) {
  case TensorPart::kPhiNotMean:
    return spec.cmpKind != CmpKind::kMean;
  case TensorPart::kPhiLinear:
    return spec.cmpKind == CmpKind::kLinear;
  case TensorPart::kPhiMlp:
    return spec.cmpKind == CmpKind::kMlp;
  case TensorPart::kListIndex:
    return spec.makeIndex || !(fieldsOf(spec.op) & kMakeIndexField);
  case TensorPart::kKeyOffset:
    return spec.keyOffset && (fieldsOf(spec.op) & kKeyOffsetField);
  default:
    return true;
  }
}

} // namespace

bool takes(const Spec &spec, TensorName name) {
  const TensorPart part = tensorRule(name).part;
  return isReached(spec, part) && isAskedFor(spec, part);
}

bool isZeroGradient(const Spec &spec, TensorName name) {
  const TensorPart part = tensorRule(name).part;
  return definitionOf(spec.op).isWholeGradient() && gradientOf(name) && !isReached(spec, part) &&
         isAskedFor(spec, part);
}

const OperatorDef *writerOf(Operator gradient, TensorName name) {
  const OperatorDef &forward = definitionOf(definitionOf(gradient).gradientOf);
  const Operand *written = forward.operandOf(name);
  return forward.op != gradient && written && written->isWritten() ? &forward : nullptr;
}

} // namespace nsa
