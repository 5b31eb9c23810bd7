// Which of the known words was meant by a word that is not known.
// Thread-safety: nearestWord is a pure function.
#pragma once

#include <span>
#include <string_view>

namespace nsa::language {

// The word that fewest insertions, deletions, replacements and exchanges of neighbours turn into one of `words`; ""
// where the nearest one is too far off to have been meant. Of equally near ones the first.
std::string_view nearestWord(std::string_view word, std::span<const std::string_view> words);

} // namespace nsa::language
