#include "runtime/json/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace nsa {
namespace {

// Levenshtein's distance, row by row.
size_t distance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = diagonal + (from[i - 1] != to[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

// True if only the end of the name was left out. Too many names begin with the same two characters.
bool isBegun(std::string_view name, std::string_view candidate) {
  return name.size() > 2 && candidate.starts_with(name);
}

// True if letters were left out of the middle as well: "--cfg" of "--config". The first letters must agree.
bool isAbbreviated(std::string_view name, std::string_view candidate) {
  const size_t dashes = std::min(name.find_first_not_of('-'), name.size());
  if (name.size() < dashes + 3 || !candidate.starts_with(name.substr(0, dashes + 1)))
    return false;
  size_t found = 0;
  for (char letter : candidate)
    found += found < name.size() && name[found] == letter;
  return found == name.size();
}

} // namespace

std::string_view nearestName(std::string_view name, std::span<const std::string_view> known) {
  std::string_view nearest;
  size_t best = std::max<size_t>(2, name.size() / 2);
  for (std::string_view candidate : known)
    if (const size_t edits = isBegun(name, candidate) ? 0 : distance(name, candidate);
        edits < best || (edits == best && nearest.empty())) {
      best = edits;
      nearest = candidate;
    }
  if (nearest.empty())
    if (const auto whole = std::ranges::find_if(known, [&](auto each) { return isAbbreviated(name, each); });
        whole != known.end())
      nearest = *whole;
  return nearest;
}

std::string nearestHint(std::string_view name, std::span<const std::string_view> known) {
  const std::string_view nearest = nearestName(name, known);
  return nearest.empty() ? "" : "did you mean " + std::string(nearest) + "?";
}

} // namespace nsa
