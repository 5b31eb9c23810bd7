// Every way to break the rule of a list of at least two blocks, of a sequence that has the blocks 0 to 7.
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace nsa::test {

// A name for messages, and what damages an ascending list.
inline std::vector<std::pair<const char *, std::function<void(std::span<int32_t>)>>> brokenLists() {
  using List = std::span<int32_t>;
  return {
      {"descending", [](List list) { std::swap(list[0], list[1]); }},
      {"repeated", [](List list) { list[1] = list[0]; }},
      {"beyond the sequence", [](List list) { list.back() = 8; }},
      {"the greatest number", [](List list) { list.back() = std::numeric_limits<int32_t>::max(); }},
      {"negative", [](List list) { list[0] = -2; }},
      {"the least number", [](List list) { list[0] = std::numeric_limits<int32_t>::min(); }},
      {"a block after -1", [](List list) { list[1] = -1; }},
  };
}

} // namespace nsa::test
