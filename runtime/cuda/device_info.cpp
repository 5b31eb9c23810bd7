#include "runtime/cuda/device_info.h"

#include "runtime/model/targets.h"

#include <cmath>

namespace nsa::cuda {

namespace {

Result<std::string> deviceName(const Driver &driver, DeviceId device) {
  char name[256] = "";
  NSA_CUDA_CALL(driver, deviceGetName, (name, sizeof name - 1, device));
  return std::string(name);
}

Status listDevices(const Driver &driver, int ordinal, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    DeviceId device = 0;
    NSA_CUDA_CALL(driver, deviceGet, (&device, i));
    NSA_ASSIGN_OR_RETURN(std::string name, deviceName(driver, device));
    list += (i ? ", cuda:" : "cuda:") + std::to_string(i) + " (" + name + ")";
  }
  return Status::invalid("device", "cuda:" + std::to_string(ordinal), "must be a device of this machine",
                         "there are: " + (list.empty() ? "none" : list));
}

} // namespace

std::string DeviceInfo::key() const {
  return name + " sms=" + std::to_string(multiprocessors) + " l2_bytes=" + std::to_string(l2Bytes) +
         " bandwidth_gbs=" + std::to_string(bandwidthGBs);
}

Result<std::string> targetOf(int computeMajor, int computeMinor) {
  const TargetDef *best = nullptr;
  for (const TargetDef &known : kTargets)
    if (known.major == computeMajor && (!best || known.minor <= computeMinor))
      best = &known;
  if (best)
    return std::string(best->name);
  return Status(ErrorInfo{.code = ErrorCode::kUnsupported,
                          .field = "compute capability",
                          .value = std::to_string(computeMajor) + "." + std::to_string(computeMinor),
                          .rule = "must be of major version 8, 9, 10 or 12",
                          .hint = "use device \"cpu\""});
}

Result<DeviceInfo> readDeviceInfo(const Driver &driver, int ordinal) {
  int count = 0;
  NSA_CUDA_CALL(driver, deviceGetCount, (&count));
  if (ordinal < 0 || ordinal >= count)
    return listDevices(driver, ordinal, count);

  DeviceInfo info;
  info.ordinal = ordinal;
  NSA_CUDA_CALL(driver, deviceGet, (&info.device, ordinal));
  Result<std::string> name = deviceName(driver, info.device);
  if (!name)
    return name.status();
  info.name = std::move(*name);

  int l2Bytes = 0, memoryClockKHz = 0, memoryBusBits = 0, sharedBytesOptIn = 0;
  const struct {
    DeviceAttribute name;
    int *value;
  } attributes[] = {{DeviceAttribute::kComputeMajor, &info.computeMajor},
                    {DeviceAttribute::kComputeMinor, &info.computeMinor},
                    {DeviceAttribute::kMultiprocessorCount, &info.multiprocessors},
                    {DeviceAttribute::kL2Bytes, &l2Bytes},
                    {DeviceAttribute::kMemoryClockKHz, &memoryClockKHz},
                    {DeviceAttribute::kMemoryBusBits, &memoryBusBits},
                    {DeviceAttribute::kSharedBytesOptIn, &sharedBytesOptIn}};
  for (const auto &attribute : attributes)
    NSA_CUDA_CALL(driver, deviceGetAttribute, (attribute.value, attribute.name, info.device));
  size_t memoryBytes = 0;
  NSA_CUDA_CALL(driver, deviceTotalMem, (&memoryBytes, info.device));

  info.memoryBytes = static_cast<int64_t>(memoryBytes);
  info.l2Bytes = l2Bytes;
  info.sharedBytesOptIn = sharedBytesOptIn;
  // Two transfers per clock; kHz * bits / 8 is kB/s.
  double gigabytesPerSecond = 2.0 * memoryClockKHz * (memoryBusBits / 8.0) / 1e6;
  info.bandwidthGBs = std::llround(gigabytesPerSecond / 100) * 100;

  NSA_ASSIGN_OR_RETURN(info.target, targetOf(info.computeMajor, info.computeMinor));
  return info;
}

} // namespace nsa::cuda
