#include "runtime/engine/choices/routes.h"

#include "runtime/base/key_splits.h"

#include <algorithm>

namespace nsa {

namespace {

constexpr Operator kSplitsOperator = Operator::kSplitSelWin;

} // namespace

std::string attentionRoute(Operator op) { return std::string(operatorName(op)) + ".attention_from"; }

bool isAsMeasured(const Spec &spec, const Maxima &maxima) {
  const Problem asked = Problem::make(spec, maxima);
  if (asked[ProblemField::kSeqlenQ] != asked[ProblemField::kSeqlenK])
    return false;
  const Maxima alone{.batch = 1, .tokensQ = maxima.seqlenQ, .seqlenQ = maxima.seqlenQ, .seqlenK = maxima.seqlenK};
  return asked.kernelText() == Problem::make(spec, alone).kernelText();
}

bool densePays(const StoredRoute &route, const Spec &spec, const Maxima &maxima) {
  const int64_t longest = bucketOf(maxima.seqlenK);
  const int64_t all = int64_t{spec.selCount} * spec.selBlock;
  return route.threshold != StoredRoute::kNever && std::min(longest, all) <= route.threshold;
}

bool slotsPay(const StoredRoute &route, const Maxima &maxima) {
  return route.threshold != StoredRoute::kNever && bucketOf(maxima.seqlenK) >= route.threshold;
}

std::string splitsRoute(const Spec &spec, const Maxima &maxima) {
  if (!sharesKeys(spec, maxima))
    return "";
  return std::string(kSplitsRoute) + fieldText(ProblemField::kBatch, bucketOf(maxima.batch)) +
         fieldText(ProblemField::kSeqlenK, bucketOf(maxima.seqlenK)) +
         fieldText(ProblemField::kSeqlenQ, bucketOf(maxima.seqlenQ));
}

bool hasSplitsRoute(Operator op) { return op == kSplitsOperator; }

std::string splitsFamily(const Spec &spec) {
  // The kernel of most of the work has most of the fields; the compressed branch and what is on have the rest.
  Spec attending = spec;
  attending.op = kSplitsOperator;
  attending.layout = Layout::kPacked;
  attending.keySplits = 0;
  return routeFamily(attending) + fieldText(ProblemField::kBranches, spec.branches) +
         fieldText(ProblemField::kCmpBlock, spec.cmpBlock) + fieldText(ProblemField::kCmpStride, spec.cmpStride) +
         fieldText(ProblemField::kWindow, spec.window) +
         // `decode_step` also multiplies with the weights.
         (spec.compresses() && spec.cmpKind != CmpKind::kMean ? " cmp_kind=" + std::string(cmpKindName(spec.cmpKind))
                                                              : "");
}

std::string routeFamily(const Spec &spec) {
  // Lengths are what the threshold is about; no value that is compiled in but whether queries are many follows from
  // them.
  Problem problem = Problem::make(spec, {.batch = 1, .tokensQ = 1, .seqlenQ = 1, .seqlenK = 1});
  problem.drop(ProblemField::kManyQueries);
  std::string text = problem.kernelText() + fieldText(ProblemField::kKvHeads, spec.kvHeads);
  if (definitionOf(spec.op).keys == MetKeys::kWindow)
    text += fieldText(ProblemField::kWindow, spec.window);
  return text;
}

} // namespace nsa
