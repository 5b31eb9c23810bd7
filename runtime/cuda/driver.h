// libcuda.so.1, which is opened at run time: its entry points, and its errors as Status values. The library
// libcuda.so.1 is opened once in a process and never closed. Nothing is linked against libcuda.so.1.
// Thread-safety: a Driver is immutable.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/driver_abi.h"

#include <string>

namespace nsa::cuda {

inline constexpr int kOldestDriver = 12000; // 12.0

class Driver {
public:
  // Returns the process's driver. The first call of `get` opens and initialises the driver. The error of `get` says
  // what is wrong: libcuda.so.1 is missing or is the toolkit's stub, there is no device, or the driver is older than
  // 12.0.
  static Result<const Driver *> get();
  // Opens the library `file` in the place of libcuda.so.1, so that tests can check the errors.
  static Result<const Driver *> open(const char *file);

// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration takes none
#define NSA_CUDA_MEMBER(field, symbol, parameters) DriverResult(*field) parameters = nullptr;
  NSA_CUDA_DRIVER_ENTRIES(NSA_CUDA_MEMBER)
#undef NSA_CUDA_MEMBER

  int version() const { return driverVersion; } // 12040 = 12.4

  // Converts the result of a driver call to a Status. A device error names the call, the driver's code and the code's
  // text. The driver's error "out of memory" becomes kOutOfMemory.
  Status check(DriverResult result, const char *call) const;

private:
  int driverVersion = 0;
};

// Returns the text of a driver version: "12.4" of 12040.
std::string versionText(int version);

// Makes a driver call, and returns from the enclosing function with an error if the call fails: NSA_CUDA_CALL(driver,
// memAlloc, (&pointer, bytes)).
#define NSA_CUDA_CALL(driver, entry, arguments)                                                                        \
  do {                                                                                                                 \
    if (::nsa::cuda::DriverResult nsaResult = (driver).entry arguments; nsaResult != ::nsa::cuda::kSuccess)            \
      return (driver).check(nsaResult, #entry);                                                                        \
  } while (false)

} // namespace nsa::cuda
