#include "tools/reference/list_check.h"

#include "tools/reference/parallel.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <limits>
#include <mutex>
#include <vector>

namespace nsa::reference {
namespace {

std::string listText(std::span<const int32_t> list) {
  std::string text = "[";
  for (const int32_t block : list)
    text += (text.size() > 1 ? " " : "") + std::to_string(block);
  return text + "]";
}

bool contains(std::span<const int32_t> list, int32_t block) {
  return std::find(list.begin(), list.end(), block) != list.end();
}

// fp32 holds no number far below this one, and kernels may flush what is near.
constexpr double kUnderflow = 0x1p-100;

// How much `higher` stands above `lower`, relative to it. Scores are never negative.
double marginOf(double higher, double lower) {
  // No rounding tells two zeros apart: the lower block goes first.
  if (higher == 0)
    return std::numeric_limits<double>::infinity();
  return higher < kUnderflow && lower < kUnderflow ? 0 : (higher - lower) / higher;
}

// The shape that every list has, whatever the scores are.
std::string formError(const Spec &spec, int64_t own, std::span<const int32_t> list) {
  const int64_t places = std::min<int64_t>(spec.selCount, own + 1);
  for (size_t slot = 0; slot < list.size(); ++slot) {
    const std::string where = "slot " + std::to_string(slot) + " holds " + std::to_string(list[slot]) + ": ";
    const bool filled = static_cast<int64_t>(slot) < places;
    if (!filled && list[slot] != -1)
      return where + "behind " + std::to_string(places) + " blocks every slot is -1";
    if (filled && (list[slot] < 0 || list[slot] > own))
      return where + "a block from 0 to the query's own, " + std::to_string(own) + ", belongs here";
    if (filled && slot > 0 && list[slot] <= list[slot - 1])
      return where + "blocks are ascending and unique";
  }
  if (static_cast<int64_t>(list.size()) < places)
    return "it has " + std::to_string(list.size()) + " slots for " + std::to_string(places) + " blocks";
  for (int64_t block = 0; block <= own; ++block)
    if (isForced(spec, block, own) && !contains(list, static_cast<int32_t>(block)))
      return "the forced block " + std::to_string(block) + " is missing";
  return "";
}

} // namespace

double tieMargin(DType dtype) {
  assert(dtype != DType::kI32 && "not an io type");
  return dtype == DType::kF32 ? 1e-5 : 1e-4;
}

double selectionMargin(std::span<const double> scores, const Spec &spec) {
  const int64_t own = static_cast<int64_t>(scores.size()) - 1;
  const std::vector<int32_t> chosen = chooseBlocks(scores, spec);
  int64_t last = -1,
          next = -1; // of the unforced blocks in their order: the last that was chosen, the first that was not
  for (int64_t block = 0; block <= own; ++block) {
    if (isForced(spec, block, own))
      continue;
    if (contains(chosen, static_cast<int32_t>(block)))
      last = last < 0 || ranksBefore(scores, last, block) ? block : last;
    else
      next = next < 0 || ranksBefore(scores, block, next) ? block : next;
  }
  if (last < 0 || next < 0)
    return std::numeric_limits<double>::infinity();
  return marginOf(scores[last], scores[next]);
}

std::string listError(std::span<const double> scores, const Spec &spec, std::span<const int32_t> list) {
  const int64_t own = static_cast<int64_t>(scores.size()) - 1;
  if (std::string error = formError(spec, own, list); !error.empty())
    return error;
  const std::vector<int32_t> expected = chooseBlocks(scores, spec);
  for (const int32_t missing : expected) {
    if (contains(list, missing))
      continue;
    for (const int32_t extra : list) {
      if (extra < 0 || contains(expected, extra))
        continue;
      const double margin = marginOf(scores[missing], scores[extra]);
      if (margin < tieMargin(spec.dtype)) // false for NaN
        continue;
      char text[200];
      std::snprintf(text, sizeof text,
                    "block %d with score %.9g is chosen and block %d with score %.9g is not: margin %.3g, a tie is "
                    "below %.0e",
                    extra, scores[extra], missing, scores[missing], margin, tieMargin(spec.dtype));
      return text;
    }
  }
  return "";
}

std::string ListReport::toString() const {
  std::string text = std::to_string(lists) + " lists, " + std::to_string(ties) + " with a tie at the border, " +
                     std::to_string(differing) + " unlike the reference's and right, " + std::to_string(wrong) +
                     " wrong";
  return firstWrong.empty() ? text : text + "; the first: " + firstWrong;
}

ListReport checkLists(const Selection &s, const BlockLists &lists, int threads) {
  assert(lists.kvHeads == s.spec.kvHeads);
  ListReport report;
  int64_t firstRow = std::numeric_limits<int64_t>::max();
  std::mutex mutex;
  forEachQuery(s.sequences, threads, [&](const Sequence &sequence, int64_t query) {
    const int64_t row = sequence.firstRow + query, position = sequence.position(query);
    for (int64_t kvHead = 0; kvHead < s.spec.kvHeads; ++kvHead) {
      const std::vector<double> scores = blockScores(s, sequence, query, kvHead);
      std::vector<int32_t> expected = chooseBlocks(scores, s.spec);
      const std::span<const int32_t> list = lists.at(row, kvHead);
      const std::string error = listError(scores, s.spec, list);
      const bool tie = selectionMargin(scores, s.spec) < tieMargin(s.spec.dtype);
      expected.resize(list.size(), -1);

      const std::scoped_lock lock(mutex);
      ++report.lists;
      report.ties += tie;
      report.differing += error.empty() && !std::equal(list.begin(), list.end(), expected.begin());
      report.wrong += !error.empty();
      if (error.empty() || row >= firstRow)
        continue;
      firstRow = row;
      report.firstWrong = "row " + std::to_string(row) + " (query " + std::to_string(query) + " of " +
                          std::to_string(sequence.queries) + ", position " + std::to_string(position) + "), kv head " +
                          std::to_string(kvHead) + ": " + error + "; given " + listText(list) + ", expected " +
                          listText(expected);
    }
  });
  return report;
}

} // namespace nsa::reference
