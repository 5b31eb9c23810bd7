// What the runtime knows about one GPU: its name, the target that the compiler is asked for, its limits.
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
  int64_t bandwidthGBs = 0; // theoretical, to the nearest hundred: a class, not a measurement
  int64_t sharedBytesOptIn = 0;

  // The model's name and what tells models of one name apart: "NVIDIA H200 sms=132 l2_bytes=... bandwidth_gbs=4800".
  std::string key() const;
};

// The target for a compute capability. An unknown minor takes the nearest lower one of its major, else the nearest.
// Unsupported below 8.0 and for a major nobody has generated code for.
Result<std::string> targetOf(int computeMajor, int computeMinor);

// An ordinal out of range is an invalid argument that lists the devices.
Result<DeviceInfo> readDeviceInfo(const Driver &driver, int ordinal);

} // namespace nsa::cuda
