#include "comparison.h"

#include "bf16.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace example {
namespace {

constexpr double kTolerance = 5e-3, kRowTolerance = 4 * kTolerance;
constexpr std::int64_t kListsOfOneTie = 10000;

// One in so many, and one where there are fewer: a single tie proves nothing.
std::int64_t mostOtherLists(std::int64_t lists) { return std::max<std::int64_t>(1, lists / kListsOfOneTie); }

} // namespace

std::vector<History> forwardPass(Device &device, nsa::Engine &engine, const std::vector<History> &histories) {
  std::vector<History> result = histories;
  std::vector<std::int64_t> firsts, counts;
  std::int64_t total = 0, longest = 0;
  for (History &history : result) {
    history.out.clear();
    history.reads.clear();
    history.lists.clear();
    firsts.push_back(0);
    counts.push_back(history.tokens());
    total += counts.back();
    longest = std::max(longest, counts.back());
  }
  nsa::Plan plan = engine.plan(layerSpec(NSA_OP_NSA, 0), {kBatch, longest, longest, total}, device.stream());
  Buffer workspace(device, plan.workspaceSize());
  TokenBuffers tokens(device, total);
  tokens.upload(result, firsts, counts);
  const std::vector<NamedTensor> tensors = tokens.tensors(total);
  const std::vector<nsa::Binding> bindings = bindingsOf(tensors);
  plan.run(bindings.data(), bindings.size(), workspace.data(), workspace.size(), device.stream());
  plan.checkStatus(device.stream());
  tokens.download(result, counts);
  return result;
}

Comparison Comparison::of(const std::vector<History> &decoded, const std::vector<History> &expected) {
  Comparison result;
  double errors = 0, squares = 0, worst = 0;
  for (std::size_t s = 0; s < expected.size(); ++s)
    for (std::size_t row = 0; row < static_cast<std::size_t>(expected[s].done()) * kHeads; ++row) {
      constexpr std::size_t kGroup = kHeads / kKvHeads;
      const std::size_t list = row / kGroup;
      const auto begin = expected[s].lists.begin() + static_cast<std::int64_t>(list * kSelCount);
      const bool sameList =
          std::equal(begin, begin + kSelCount, decoded[s].lists.begin() + static_cast<std::int64_t>(list * kSelCount));
      if (row % kGroup == 0) {
        ++result.lists;
        result.otherLists += !sameList;
        result.otherReads += decoded[s].reads[list] != expected[s].reads[list];
      }
      if (!sameList)
        continue;
      double rowErrors = 0, rowSquares = 0;
      for (std::size_t i = row * kDim; i < (row + 1) * kDim; ++i) {
        const double value = fromBf16(expected[s].out[i]), difference = fromBf16(decoded[s].out[i]) - value;
        rowErrors += difference * difference;
        rowSquares += value * value;
      }
      errors += rowErrors;
      squares += rowSquares;
      if (!std::isnan(worst) && !(rowErrors <= worst * rowSquares)) // NaN goes in, and stays
        worst = rowErrors / rowSquares;
    }
  result.relativeRms = std::sqrt(errors / squares);
  result.worstRow = std::sqrt(worst);
  return result;
}

bool Comparison::isWithin() const {
  return relativeRms <= kTolerance && worstRow <= kRowTolerance && otherReads == 0 &&
         otherLists <= mostOtherLists(lists);
}

std::string Comparison::toString() const {
  std::ostringstream text;
  text << "relative RMS " << relativeRms << " (limit " << kTolerance << "), worst row " << worstRow << " (limit "
       << kRowTolerance << "), other lists " << otherLists << " of " << lists << " (limit " << mostOtherLists(lists)
       << "), other reads " << otherReads;
  return text.str();
}

} // namespace example
