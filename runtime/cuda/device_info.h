// What the runtime knows about one GPU: its name, the target that the compiler makes code for, and its limits.
// Thread-safety: values.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/driver.h"

#include <cstdint>
#include <string>

namespace nsa::cuda {

struct DeviceInfo {
  int ordinal = 0;
  DeviceId device = 0;
  std::string name;
  int computeMajor = 0;
  int computeMinor = 0;
  std::string target; // "sm_90a"
  int multiprocessors = 0;
  int64_t l2Bytes = 0;
  int64_t memoryBytes = 0;
  int64_t bandwidthGBs = 0; // theoretical, to the nearest hundred: it tells models apart and is no measurement
  int64_t sharedBytesOptIn = 0;

  // Returns the device key, under which choices are stored: the name of the GPU's model, and numbers in which models
  // with the same name differ. "NVIDIA H200 sms=132 l2_bytes=... bandwidth_gbs=4800".
  std::string key() const;
};

// Returns the target for a compute capability. For an unknown minor version, targetOf returns the target of the nearest
// lower minor version with the same major version, or else of the nearest higher one. A compute capability below 8.0,
// or of a major version that no generated code exists for, is the error kUnsupported.
Result<std::string> targetOf(int computeMajor, int computeMinor);

// Reads the DeviceInfo of a device from the driver. A device ordinal out of range is an invalid argument, and the error
// lists the devices.
Result<DeviceInfo> readDeviceInfo(const Driver &driver, int ordinal);

} // namespace nsa::cuda
