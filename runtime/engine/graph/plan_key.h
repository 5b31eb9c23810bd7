// The key under which PlanMap finds a plan: the values that identify its problem (runtime/base/problem.h), so that
// finding a plan composes no text. Two requests whose sizes are rounded up to the same buckets, and that allow the
// same shortcuts (routesOf), have the same plan key, because they have the same stored choice. Two specs with equal
// `decodeStep` have equal keys exactly when their steps (pipeline.h) have equal Problem::key() texts. An equal key with
// `decodeStep` also means equal texts without it, so one key serves a plan that may have either way.
//
// Thread-safety: values.
#pragma once

#include "runtime/base/key_splits.h"
#include "runtime/engine/graph/pipeline.h"

#include <cstddef>
#include <cstdint>

namespace nsa {

struct PlanKey {
  Problem values;
  bool operator==(const PlanKey &) const = default;

  // The spec and the maxima must have passed validate().
  static PlanKey make(const Spec &spec, const Maxima &maxima) {
    const OperatorDef &def = definitionOf(spec.op);
    Problem values = def.hasBranches() ? ofSteps(spec, maxima) : Problem::take(spec, maxima, def.fields, def.constants);
    if ((def.fields & kMakeIndexField) && spec.makeIndex)
      values.set(ProblemField::kMakeIndex, 1);
    return {values};
  }
  size_t hash() const { return values.hash(); }
  struct Hash {
    size_t operator()(const PlanKey &key) const { return key.hash(); }
  };

private:
  // Takes the values that the steps of nsa or decode have together.
  static Problem ofSteps(const Spec &spec, const Maxima &maxima) {
    const OperatorDef &def = definitionOf(spec.op);
    uint32_t fields = def.fields;
    // In some plans of decode, several programs of a grid share the keys of a query (sharesKeys). The kernels of a plan
    // that shares keys depend neither on the layout nor on routesOf (pipeline.h). If a plan that shares keys has the
    // branch sel, it uses the kernel that can compute both sel and win, even if the branch win is off.
    const bool shares = sharesKeys(spec, maxima) && !spec.decodeStep;
    const bool isJoined = shares && spec.hasBranch(kBranchSel);
    Spec computed = spec;
    if (isJoined && !spec.hasBranch(kBranchWin))
      computed.window = static_cast<int32_t>(choosingMaxima(spec, maxima).seqlenK);
    if (!spec.hasBranch(kBranchWin) && !isJoined)
      fields &= ~uint32_t{kWindowField};
    if (!spec.hasBranch(kBranchSel) && !spec.decodeStep)
      fields &= ~uint32_t{kSelGeometry};
    // A gradient has a kernel for phi's weights also where no branch reads them.
    if (!spec.compresses() && (!def.isGradient() || spec.cmpKind == CmpKind::kMean))
      fields &= ~uint32_t{kCmpGeometry | kPhi};
    if (!spec.compresses()) {
      computed.mlpActivation = Spec().mlpActivation;
      if (spec.decodeStep)
        computed.cmpKind = CmpKind::kMean;
    }
    const uint32_t constants = (spec.decodeStep ? kStepConstant
                                : shares        ? kSlotsConstant
                                                : kLayoutConstant) |
                               (fields & kPages ? kPageConstant : uint32_t{0});
    Problem values = Problem::take(computed, maxima, fields, constants);
    if (spec.decodeStep) // its kernel is compiled for the branches
      return values;
    if (!shares)
      values.set(ProblemField::kRoutes, routesOf(spec, maxima));
    // The branch sel needs the kernels of the branch cmp.
    const int32_t branches = spec.branches | (spec.compresses() ? kBranchCmp : 0);
    values.set(ProblemField::kBranches, isJoined ? kAllBranches : branches);
    return values;
  }
};

} // namespace nsa
