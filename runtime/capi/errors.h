// Converts Status to nsa_status and nsa_error, and catches every exception of a C entry.
// Thread-safety: pure functions on the caller's struct.
#pragma once

#include "runtime/base/status.h"
#include "runtime/include/nsa/nsa.h"
#include "runtime/process/attempt.h"

#include <cstring>
#include <exception>
#include <new>
#include <string_view>

namespace nsa::capi {

// The bytes of nsa_error.hint in nsa.h of 0.1. nsa_error has no size, so more bytes of a hint are written only for the
// engines of hosts that are known to be newer.
inline constexpr size_t kHintBytesOf01 = 384;

// Fills the caller's nsa_error, which may be null, and cuts texts that are too long. The hint gets at most `hintBytes`.
nsa_status report(const Status &status, nsa_error *error, size_t hintBytes = kHintBytesOf01);

// Calls the body of a function of the C ABI, converts the Status that the body returns, and catches its exceptions. No
// exception leaves the library.
template <typename Body> nsa_status guarded(nsa_error *error, size_t hintBytes, Body body) {
  try {
    return report(body(), error, hintBytes);
  } catch (const std::bad_alloc &) {
    return report(Status::error(ErrorCode::kOutOfMemory, "no memory left in the process"), error);
  } catch (const std::exception &exception) {
    return report(exceptionStatus(exception.what()), error);
  } catch (...) {
    return report(exceptionStatus("an exception of unknown type"), error);
  }
}

template <typename Body> nsa_status guarded(nsa_error *error, Body body) {
  return guarded(error, kHintBytesOf01, body);
}

// Returns the number that a host wrote into a field whose type is an enumeration. numberOf copies the bytes of the
// field, because reading an enumeration with a value outside of its range is undefined behaviour in C++.
template <typename Enum> int numberOf(const Enum &value) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number;
  memcpy(&number, &value, sizeof number);
  return number;
}

Status requirePointer(const void *pointer, std::string_view name);

} // namespace nsa::capi
