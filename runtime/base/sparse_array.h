// A set of indices below a constant, and an array most of whose items are absent. An index is a number or an
// enumerator. Thread-safety: values.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

namespace nsa {

template <size_t kCount, typename Index = size_t> class IndexSet {
public:
  bool has(Index index) const { return (words[wordOf(index)] & bitOf(index)) != 0; }
  void add(Index index) { words[wordOf(index)] |= bitOf(index); }

  // Returns the least index of this set that `other` does not have.
  std::optional<Index> firstNotIn(const IndexSet &other) const {
    for (size_t word = 0; word < words.size(); ++word)
      if (const uint64_t bits = words[word] & ~other.words[word])
        return firstOf(word, bits);
    return std::nullopt;
  }
  // Calls `visit` with each index of the set, in ascending order.
  template <typename Visit> void forEach(Visit visit) const {
    for (size_t word = 0; word < words.size(); ++word)
      for (uint64_t bits = words[word]; bits != 0; bits &= bits - 1)
        visit(firstOf(word, bits));
  }

private:
  static constexpr size_t kWordBits = 64;
  static size_t wordOf(Index index) { return static_cast<size_t>(index) / kWordBits; }
  static uint64_t bitOf(Index index) { return uint64_t{1} << static_cast<size_t>(index) % kWordBits; }
  static Index firstOf(size_t word, uint64_t bits) {
    return static_cast<Index>(word * kWordBits + static_cast<size_t>(std::countr_zero(bits)));
  }

  std::array<uint64_t, (kCount + kWordBits - 1) / kWordBits> words = {};
};

// The constructors and the assignment do not write or copy absent items, so that making and copying a SparseArray takes
// little time.
template <typename Item, size_t kCount, typename Index = size_t> class SparseArray {
  static_assert(std::is_trivially_destructible_v<Item>);

public:
  SparseArray() {}
  SparseArray(const SparseArray &other) { *this = other; }
  SparseArray &operator=(const SparseArray &other) {
    present = other.present;
    present.forEach([&](Index index) { std::construct_at(&at(index), *other.find(index)); });
    return *this;
  }

  const Item *find(Index index) const { return present.has(index) ? &items[static_cast<size_t>(index)] : nullptr; }
  // Returns an item for writing; an absent item becomes present.
  Item &operator[](Index index) {
    if (!present.has(index)) {
      std::construct_at(&at(index));
      present.add(index);
    }
    return at(index);
  }
  const IndexSet<kCount, Index> &indices() const { return present; }

private:
  Item &at(Index index) { return items[static_cast<size_t>(index)]; }

  IndexSet<kCount, Index> present;
  union {
    std::array<Item, kCount> items;
  };
};

} // namespace nsa
