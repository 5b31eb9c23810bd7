// Runs a function on a thread that the library began, and turns every exception that the function throws into a Status.
// An exception that left a thread of the library would end the host's process.
// Thread-safety: pure.
#pragma once

#include "runtime/base/status.h"

#include <exception>
#include <new>
#include <string>

namespace nsa {

// The error for an exception with the text `what` that no part of the library expects.
inline Status exceptionStatus(const char *what) {
  return Status::error(ErrorCode::kInternal, what,
                       "a callback of the host threw this exception, or it is a bug of the library: report it with the "
                       "spec and the maxima of the call");
}

// Calls the function `work` and returns the Status that it returns. An exception becomes an error: std::bad_alloc is
// kOutOfMemory, every other exception is kInternal. `purpose` is the end of the error message "no host memory to ...",
// from the word "to" on.
template <typename Work> Status attempt(const char *purpose, Work &&work) {
  try {
    return work();
  } catch (const std::bad_alloc &) {
    return Status::error(ErrorCode::kOutOfMemory, std::string("no host memory ") + purpose);
  } catch (const std::exception &error) {
    return exceptionStatus(error.what());
  } catch (...) {
    return exceptionStatus("an exception of unknown type");
  }
}

} // namespace nsa
