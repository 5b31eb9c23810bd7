#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <memory>

namespace nsa::cuda {

namespace {

constexpr const char *kInstallHint =
    "install an NVIDIA driver of version 525 (CUDA 12.0) or newer, or use device \"cpu\"";

Status unavailable(std::string message, std::string hint = kInstallHint) {
  return Status::error(ErrorCode::kUnavailable, std::move(message), std::move(hint));
}

} // namespace

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Result<const Driver *> Driver::get() {
  static const Result<const Driver *> driver = open("libcuda.so.1");
  return driver;
}

Result<const Driver *> Driver::open(const char *file) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char *reason = dlerror();
    return unavailable("no CUDA driver: " + std::string(reason ? reason : file));
  }
  // cuDriverGetVersion works before cuInit and in every driver, so an old one can be named before its entries are
  // missed.
  auto getVersion = reinterpret_cast<DriverResult (*)(int *)>(dlsym(library, "cuDriverGetVersion"));
  if (!getVersion)
    return unavailable(std::string(file) + " is not a CUDA driver (it has no cuDriverGetVersion)");
  auto driver = std::make_unique<Driver>();
  DriverResult result = getVersion(&driver->driverVersion);
  const Status stub =
      unavailable(std::string(file) + " is the CUDA toolkit's stub, which only serves linking; there is no driver");
  if (result == kErrorStubLibrary)
    return stub;
  if (result != kSuccess)
    return unavailable("the CUDA driver does not say its version (error " + std::to_string(result) + ")");
  if (driver->driverVersion < kOldestDriver)
    return unavailable("the CUDA driver is too old: it supports CUDA " + versionText(driver->driverVersion) +
                       ", needed is " + versionText(kOldestDriver));

  using GetProcAddress = DriverResult (*)(const char *, void **, int, uint64_t, int *);
  auto getProcAddress = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (!getProcAddress)
    return unavailable(std::string(file) + " lacks cuGetProcAddress_v2, which CUDA 12.0 has");
  const struct {
    const char *name;
    void **address;
  } entries[] = {
#define NSA_CUDA_ENTRY(field, symbol, parameters) {#symbol, reinterpret_cast<void **>(&driver->field)},
      NSA_CUDA_DRIVER_ENTRIES(NSA_CUDA_ENTRY)
#undef NSA_CUDA_ENTRY
  };
  for (const auto &entry : entries) {
    result = getProcAddress(entry.name, entry.address, kOldestDriver, 0, nullptr);
    if (result == kErrorStubLibrary)
      return stub;
    if (result != kSuccess || !*entry.address)
      return unavailable("the CUDA driver " + versionText(driver->driverVersion) + " lacks " + entry.name);
  }

  result = driver->init(0);
  if (result == kErrorStubLibrary)
    return stub;
  if (result == kErrorNoDevice)
    return unavailable("the CUDA driver finds no GPU",
                       "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use device \"cpu\"");
  if (result != kSuccess)
    return unavailable("the CUDA driver does not start: " + driver->check(result, "init").error().message,
                       "check nvidia-smi; after a driver update the machine must be restarted");
  // Kept for the life of the process, as the library is.
  return driver.release();
}

Status Driver::check(DriverResult result, const char *call) const {
  if (result == kSuccess)
    return Status::ok();
  const char *name = nullptr;
  const char *text = nullptr;
  getErrorName(result, &name);
  getErrorString(result, &text);
  std::string message = std::string("CUDA driver call ") + call + " failed: " + (name ? name : "unknown error") + " (" +
                        std::to_string(result) + ")";
  if (text)
    message.append(": ").append(text);
  return Status::error(result == kErrorOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kDeviceError,
                       std::move(message));
}

} // namespace nsa::cuda
