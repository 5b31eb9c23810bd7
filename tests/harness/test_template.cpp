#include "tests/harness/test_template.h"

#include "runtime/base/key_splits.h"

#include <algorithm>
#include <bit>
#include <string_view>

namespace nsa::test {
namespace {

bool isStep() { return std::string_view(kTestTemplate) == kStepTemplate; }
bool isByHand() { return isStep() || std::string_view(kTestTemplate) == kHopperTemplate; }

bool servesGroup(int32_t group) { return !isByHand() || (isStep() ? group <= 64 : 64 % group == 0 || group == 128); }

bool servesDim(int32_t dim) { return !isByHand() || (dim % 8 == 0 && dim <= 256); }

bool attends(Operator op) {
  if (isStep())
    return definitionOf(op).hasCache;
  // The backward pass of `nsa` computes the outputs of the branches again.
  return hasVariants(op) || op == Operator::kSelect || op == Operator::kNsa || op == Operator::kNsaBwd;
}

} // namespace

bool isServed(const Spec &spec) {
  if (!isByHand())
    return true;
  return attends(spec.op) && spec.dtype != DType::kF32 && (isStep() || spec.pageSize == 0) && servesDim(spec.qkDim) &&
         servesDim(spec.vDim) && servesGroup(spec.group());
}

const std::vector<DType> &servedTypes() {
  static const std::vector<DType> all = {DType::kBf16, DType::kF16, DType::kF32}, halves = {DType::kBf16, DType::kF16};
  return isByHand() ? halves : all;
}

int32_t servedGroup(int32_t group) {
  return servesGroup(group) ? group : static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(group)));
}

int64_t servedNew(const Spec &spec, int64_t most) {
  return isStep() ? std::min<int64_t>(most, stepTokens(spec)) : most;
}

Maxima servedMaxima(const Spec &spec, Maxima maxima) {
  if (!isByHand() || isStep() || !attends(spec.op))
    return maxima;
  while (!hasManyRows(spec, maxima))
    maxima.batch *= 2;
  return maxima;
}

std::string whyNotOn(const std::string &target) {
  if (!isByHand() || target == "sm_90a")
    return "";
  return std::string("of another architecture: ") + kTestTemplate + " is for sm_90a, not " + target;
}

} // namespace nsa::test
