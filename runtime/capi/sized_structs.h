// Reads and writes the structs of hosts that were compiled with another nsa.h: the host's struct may be smaller or
// larger than this library's. Fields that the host does not know are zero, and bytes that this library does not know
// must be zero.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"
#include "runtime/capi/earlier_structs.h"
#include "runtime/capi/errors.h"
#include "runtime/include/nsa/nsa.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace nsa::capi {

// The smallest size that a function accepts for the struct T, and the name of T.
template <typename T> struct SizedStruct;
#define NSA_SIZED_STRUCT(type, last)                                                                                   \
  template <> struct SizedStruct<type> {                                                                               \
    static constexpr size_t kLeastBytes = offsetof(type, last) + sizeof(type::last);                                   \
    static constexpr std::string_view kName = #type;                                                                   \
  };
#define NSA_LIST_ENTRY NSA_SIZED_STRUCT
#include "runtime/capi/sized_structs.def"

inline constexpr size_t kMostStructBytes = 4096; // a larger number is a size that was not set
// Returns an error unless `size` is from `least` to kMostStructBytes. `field` is what the error names.
Status checkSize(size_t size, size_t least, std::string_view type, const std::string &field);
// Checks the size too, and returns an error unless the bytes of the struct from `known` on are zero. `name` is the
// argument's name.
Status checkStructSize(const void *value, size_t size, size_t least, size_t known, std::string_view type,
                       std::string_view name);
Status reservedError(std::string_view name, int64_t value);
// Checks the rules of every struct with a size: it is present, its size is accepted, and its reserved fields are zero.
// If the host's struct has another size than this library's, readStruct copies it to `storage` and lets `value` point
// there.
template <typename T> Status readStruct(const T *&value, T &storage, std::string_view name) {
  NSA_RETURN_IF_ERROR(requirePointer(value, name));
  if (const size_t size = value->size; size != sizeof(T)) {
    NSA_RETURN_IF_ERROR(
        checkStructSize(value, size, SizedStruct<T>::kLeastBytes, sizeof(T), SizedStruct<T>::kName, name));
    storage = T{};
    bool isCopied = false;
    if constexpr (std::is_same_v<T, nsa_engine_options>)
      if (isEarlier(*value)) {
        NSA_RETURN_IF_ERROR(copyEarlier(*value, storage));
        isCopied = true;
      }
    if (!isCopied)
      memcpy(&storage, value, std::min(size, sizeof(T)));
    storage.size = sizeof(T);
    value = &storage;
  }
  if constexpr (requires { value->reserved; })
    for (auto reserved : value->reserved)
      if (reserved != 0)
        return reservedError(name, reserved);
  return Status::ok();
}

// Gives the host the fields of a result that it knows.
template <typename T> Status giveStruct(T full, T *target, std::string_view name) {
  NSA_RETURN_IF_ERROR(requirePointer(target, name));
  const size_t known = target->size; // to the host
  NSA_RETURN_IF_ERROR(
      checkStructSize(target, known, SizedStruct<T>::kLeastBytes, sizeof(T), SizedStruct<T>::kName, name));
  full.size = known;
  memcpy(target, &full, known < sizeof(T) ? known : sizeof(T));
  return Status::ok();
}

// Fills a struct whose size the host passes beside it. Where this cannot be a size, nothing but the field `size` is
// written, and the function that reads the struct refuses it.
template <typename T> void fillStruct(T full, T *target, size_t bytes) {
  full.size = bytes;
  const bool isSize = bytes >= SizedStruct<T>::kLeastBytes && bytes <= kMostStructBytes;
  if (isSize)
    memset(static_cast<void *>(target), 0, bytes);
  memcpy(target, &full, isSize ? std::min(bytes, sizeof(T)) : sizeof(full.size));
}

// A list that a host wants filled: entries of `each` bytes, of which the host has place for `capacity`.
template <typename T> struct HostList {
  T *entries;
  size_t each, capacity;
  size_t *count;
  const char *name, *eachName; // of the arguments

  // Sets *count to 0.
  Status check() const {
    NSA_RETURN_IF_ERROR(requirePointer(count, "count"));
    *count = 0;
    if (capacity != 0)
      NSA_RETURN_IF_ERROR(requirePointer(entries, name));
    return checkSize(each, SizedStruct<T>::kLeastBytes, SizedStruct<T>::kName, eachName);
  }
  // Calls fill(value, entry) for each value that has place, and sets *count to the number of all values.
  template <typename Value, typename Fill> Status give(const std::vector<Value> &values, Fill fill) const {
    *count = values.size();
    auto *target = reinterpret_cast<std::byte *>(entries);
    for (size_t i = 0; i < std::min(capacity, values.size()); ++i, target += each) {
      T entry = {};
      fill(values[i], entry);
      memset(target, 0, each);
      memcpy(target, &entry, std::min(each, sizeof entry));
    }
    return Status::ok();
  }
};

} // namespace nsa::capi
