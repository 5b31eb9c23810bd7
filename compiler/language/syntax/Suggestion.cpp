#include "compiler/language/syntax/Suggestion.h"

#include <algorithm>
#include <vector>

namespace nsa::language {

namespace {

// Longer words than this are not compared: the time is the product of both lengths.
constexpr size_t kLongest = 64;

// The distance of Damerau and Levenshtein where no part is edited twice.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> beforeLast(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], beforeLast[j - 2] + 1);
    }
    beforeLast.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

} // namespace

std::string_view nearestWord(std::string_view word, std::span<const std::string_view> words) {
  std::string_view best;
  size_t least = word.size() / 3 + 1; // as clang: a third of the letters may be wrong
  if (word.size() > kLongest)
    return best;
  for (const std::string_view candidate : words) {
    if (candidate.size() > kLongest || candidate == word)
      continue;
    const size_t found = distance(word, candidate);
    if (found < least || (found == least && best.empty() && found < word.size())) {
      least = found;
      best = candidate;
    }
  }
  return best;
}

} // namespace nsa::language
