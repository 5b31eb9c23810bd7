// Converts Status to nsa_status and nsa_error, and catches every exception of a C entry.
// Thread-safety: each thread has a last failure of its own.
#pragma once

#include "runtime/base/status.h"
#include "runtime/include/nsa/nsa.h"
#include "runtime/process/attempt.h"

#include <cstring>
#include <exception>
#include <new>
#include <string_view>

namespace nsa::capi {

// nsa_error has no size, so it has the bytes that the first nsa.h gave it.
static_assert(sizeof(nsa_error) == 1348);

// Fills the caller's nsa_error, which may be null, and cuts texts that are too long. A failure is kept, whole, as the
// last one of the calling thread.
nsa_status report(const Status &status, nsa_error *error) noexcept;
// The last failure of the calling thread, with its sentence as the message. Before the first failure its code is kOk.
const ErrorInfo &lastFailure();

// Calls the body of a function of the C ABI, converts the Status that the body returns, and catches its exceptions. No
// exception leaves the library.
template <typename Body> nsa_status guarded(nsa_error *error, Body body) {
  try {
    return report(body(), error);
  } catch (const std::bad_alloc &) {
    return report(Status::error(ErrorCode::kOutOfMemory, "no memory left in the process"), error);
  } catch (const std::exception &exception) {
    return report(exceptionStatus(exception.what()), error);
  } catch (...) {
    return report(exceptionStatus("an exception of unknown type"), error);
  }
}

// Returns the number that a host wrote into a field whose type is an enumeration. numberOf copies the bytes of the
// field, because reading an enumeration with a value outside of its range is undefined behaviour in C++.
template <typename Enum> int numberOf(const Enum &value) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number;
  memcpy(&number, &value, sizeof number);
  return number;
}

// Copies a text to a field of a struct. A text that is too long is cut and ends with "...".
void copyText(char *target, size_t capacity, std::string_view text);
template <size_t N> void copyText(char (&target)[N], std::string_view text) {
  static_assert(N > 4);
  copyText(target, N, text);
}

Status nullError(std::string_view name);
inline Status requirePointer(const void *pointer, std::string_view name) {
  return pointer ? Status::ok() : nullError(name);
}

} // namespace nsa::capi
