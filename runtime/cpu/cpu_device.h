// Implements the engine's interface Device for the CPU. CPU kernels are made for a feature level (x86-64-v3 or v4). The
// feature level is in the device key and in the kernel's manifest. A kernel that was stored for a higher feature level
// than this processor has is therefore not found and never runs.
// Thread-safety: as Device.
#pragma once

#include "runtime/cpu/worker_pool.h"
#include "runtime/device/device.h"

#include <mutex>

namespace nsa::cpu {

class CpuDevice final : public Device {
public:
  // `threads`: 0 means all cores. `features` is the feature level for which kernels are made; "" means the highest
  // level of this processor. If the processor lacks the level that `features` names, the result is the error of an
  // invalid argument.
  static Result<std::unique_ptr<Device>> open(int threads, const std::string &features);

  bool isGpu() const override { return false; }
  const std::string &key() const override { return deviceKey; }
  const std::string &target() const override { return targetName; }
  std::string cpuFeatures() const override { return features; }
  std::vector<std::pair<std::string, std::string>> facts() const override;

  Result<std::unique_ptr<Kernel>> load(const Manifest &manifest, std::span<const std::byte> binary) override;
  int64_t gridLimit(int axis) const override { return 2147483647; }
  int64_t multiprocessors() const override { return 1; } // the worker pool deals out programs by itself

  Result<void *> allocate(size_t bytes) override;
  void release(void *memory) override;
  Status upload(void *to, const void *from, size_t bytes) override;
  Status download(void *to, const void *from, size_t bytes) override;
  std::unique_ptr<LaunchClock> makeClock() override;
  Result<double> time(const std::function<Status(void *stream)> &launch) override;
  double timeResolutionMs() const override;
  double stateShift() const override;

private:
  CpuDevice(int threads, std::string features);

  std::string features;
  std::string deviceKey;
  std::string targetName = "cpu";
  WorkerPool pool;
  std::mutex timeMutex;
};

} // namespace nsa::cpu
