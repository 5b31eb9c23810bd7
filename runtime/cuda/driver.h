// libcuda.so.1, opened at run time: its entry points and its errors as Status values.
// Opened once per process and never closed; nothing is linked against it.
// Thread-safety: a Driver is immutable.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/driver_abi.h"

#include <string>

namespace nsa::cuda {

inline constexpr int kOldestDriver = 12000; // 12.0

class Driver {
public:
  // The process's driver, opened and initialised by the first call. The error says what is missing: the library,
  // a real one (the toolkit's stub only links), a device, or version 12.0.
  static Result<const Driver *> get();
  // Opens another file than libcuda.so.1, for the tests of the errors.
  static Result<const Driver *> open(const char *file);

// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration takes none
#define NSA_CUDA_MEMBER(field, symbol, parameters) DriverResult(*field) parameters = nullptr;
  NSA_CUDA_DRIVER_ENTRIES(NSA_CUDA_MEMBER)
#undef NSA_CUDA_MEMBER

  int version() const { return driverVersion; } // 12040 = 12.4

  // Ok, or a device error that names the call, the driver's code and its text. Running out of memory keeps its own
  // code.
  Status check(DriverResult result, const char *call) const;

private:
  int driverVersion = 0;
};

// "12.4" of 12040.
std::string versionText(int version);

// Leaves the enclosing function when a driver call fails: NSA_CUDA_CALL(driver, memAlloc, (&pointer, bytes)).
#define NSA_CUDA_CALL(driver, entry, arguments)                                                                        \
  do {                                                                                                                 \
    if (::nsa::cuda::DriverResult nsaResult = (driver).entry arguments; nsaResult != ::nsa::cuda::kSuccess)            \
      return (driver).check(nsaResult, #entry);                                                                        \
  } while (false)

} // namespace nsa::cuda
