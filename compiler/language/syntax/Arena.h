// Memory of one syntax tree. What lies in an arena is freed with it, all at once and without a destructor, so that a
// deep tree needs no deep recursion to go.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace nsa::language {

class Arena {
public:
  template <typename T, typename... Arguments> T *make(Arguments &&...arguments) {
    static_assert(std::is_trivially_destructible_v<T>, "an arena calls no destructor");
    return ::new (allocate(sizeof(T), alignof(T))) T{std::forward<Arguments>(arguments)...};
  }

  template <typename T> std::span<const T> copy(const std::vector<T> &list) {
    static_assert(std::is_trivially_destructible_v<T>, "an arena calls no destructor");
    if (list.empty())
      return {};
    T *first = static_cast<T *>(allocate(sizeof(T) * list.size(), alignof(T)));
    std::uninitialized_copy(list.begin(), list.end(), first);
    return {first, list.size()};
  }

private:
  static constexpr size_t kBlockBytes = size_t{1} << 14;

  void *allocate(size_t bytes, size_t alignment) {
    void *at = next;
    if (!next || !std::align(alignment, bytes, at, left)) {
      left = bytes + alignment > kBlockBytes ? bytes + alignment : kBlockBytes;
      blocks.push_back(std::make_unique_for_overwrite<std::byte[]>(left));
      at = blocks.back().get();
      std::align(alignment, bytes, at, left);
    }
    next = static_cast<std::byte *>(at) + bytes;
    left -= bytes;
    return at;
  }

  std::vector<std::unique_ptr<std::byte[]>> blocks;
  std::byte *next = nullptr;
  size_t left = 0;
};

} // namespace nsa::language
