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

// Fills the caller's nsa_error, which may be null, and cuts texts that are too long.
nsa_status report(const Status &status, nsa_error *error);

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

Status requirePointer(const void *pointer, std::string_view name);

// Checks the rules of every input struct: the struct is present, its size is this library's, and its reserved fields
// are zero.
template <typename T> Status checkStruct(const T *value, std::string_view name) {
  NSA_RETURN_IF_ERROR(requirePointer(value, name));
  if (value->size != sizeof(T))
    return Status::invalid(std::string(name) + ".size", std::to_string(value->size),
                           "must be " + std::to_string(sizeof(T)),
                           "initialise it with NSA_INIT, and use one version of nsa.h");
  if constexpr (requires { value->reserved; })
    for (auto reserved : value->reserved)
      if (reserved != 0)
        return Status::invalid(std::string(name) + ".reserved", std::to_string(reserved), "must be 0");
  return Status::ok();
}

} // namespace nsa::capi
