// Reads the structs of hosts that were compiled with another nsa.h: the host's struct may be smaller or larger than
// this library's. Fields that the host does not know are zero, and bytes that this library does not know must be zero.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"
#include "runtime/capi/errors.h"
#include "runtime/include/nsa/nsa.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace nsa::capi {

// The smallest size that a function accepts for the struct T, and the name of T.
template <typename T> struct SizedStruct;
#define NSA_SIZED_STRUCT(type, last)                                                                                   \
  template <> struct SizedStruct<type> {                                                                               \
    static constexpr size_t kLeastBytes = offsetof(type, last) + sizeof(type::last);                                   \
    static constexpr std::string_view kName = #type;                                                                   \
  };
#include "runtime/capi/sized_structs.def"

// In nsa.h of 0.1, nsa_engine_options had no field record_path, and the later fields lay eight bytes before their
// present place. No other nsa.h had a smaller nsa_engine_options than 0.2.
inline constexpr size_t kOptionsBytesOf02 = 240;
inline bool isOptionsOf01(const nsa_engine_options &options) { return options.size < kOptionsBytesOf02; }

// Returns an error unless `size` is from `least` to kMostStructBytes and the bytes of the struct from `known` on are
// zero. `name` is the argument's name.
inline constexpr size_t kMostStructBytes = 4096; // a larger number is a size that was not set
Status checkStructSize(const void *value, size_t size, size_t least, size_t known, std::string_view type,
                       std::string_view name);
Status reservedError(std::string_view name, int64_t value);
// Copies the host's options, whose size is accepted, to the places that the fields have in this library. The reserved
// numbers of 0.1 lie where later headers have fields, so copyOptions checks them itself.
Status copyOptions(const nsa_engine_options &host, nsa_engine_options &storage);

// Checks the rules of every struct with a size: it is present, its size is accepted, and its reserved fields are zero.
// If the host's struct has another size than this library's, readStruct copies it to `storage` and lets `value` point
// there.
template <typename T> Status readStruct(const T *&value, T &storage, std::string_view name) {
  NSA_RETURN_IF_ERROR(requirePointer(value, name));
  if (const size_t size = value->size; size != sizeof(T)) {
    NSA_RETURN_IF_ERROR(
        checkStructSize(value, size, SizedStruct<T>::kLeastBytes, sizeof(T), SizedStruct<T>::kName, name));
    storage = T{};
    if constexpr (std::is_same_v<T, nsa_engine_options>)
      NSA_RETURN_IF_ERROR(copyOptions(*value, storage));
    else
      memcpy(&storage, value, size < sizeof(T) ? size : sizeof(T));
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

} // namespace nsa::capi
