// What a thread of the library's own does: an exception that left it would end the host's process.
// Thread-safety: pure.
#pragma once

#include "runtime/base/status.h"

#include <exception>
#include <new>
#include <string>

namespace nsa {

// Calls `work`, which returns Status; what it throws is an error. `purpose` tells what memory was wanted for: "to ...".
template <typename Work> Status attempt(const char *purpose, Work &&work) {
  try {
    return work();
  } catch (const std::bad_alloc &) {
    return Status::error(ErrorCode::kOutOfMemory, std::string("no host memory ") + purpose);
  } catch (const std::exception &error) {
    return Status::error(ErrorCode::kInternal, error.what());
  } catch (...) {
    return Status::error(ErrorCode::kInternal, "an exception of unknown type");
  }
}

} // namespace nsa
