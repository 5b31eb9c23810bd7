// The interface through which the engine uses a CPU or a GPU: to load and launch kernels, and, for tuning, to allocate
// and copy device memory and to measure times. The CPU executor (runtime/cpu) and the CUDA driver (runtime/cuda)
// implement Device, and the engine depends only on the interface Device.
// Ownership: an engine owns its device. Kernels and buffers must be destroyed before their device.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/base/device_status.h"
#include "runtime/base/manifest.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_map.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nsa {

// A loaded kernel. A loaded kernel is complete, so its first launch takes no longer than a later one.
class Kernel {
public:
  virtual ~Kernel() = default;
  // Launches a grid. `slots` are the arguments in the manifest's order. `workspace` has workspaceBytes() bytes, aligned
  // to kWorkspaceAlignment. `launch` allocates nothing and, on a GPU, returns at once.
  virtual Status launch(const uint64_t *slots, const int32_t (&grid)[3], void *workspace, void *stream) const = 0;
  virtual size_t workspaceBytes() const = 0;
  // Writes the tensor map that `shape` describes into the 16 slots of an argument, and allocates nothing. Only kernels
  // of a GPU take tensor maps.
  virtual Status writeMap(const TensorMapShape &shape, uint64_t *slots) const = 0;
  // Returns what the device reports about the loaded code, by name: the number of registers and the bytes of local
  // memory. For a CPU kernel, `evidence` returns an empty map.
  virtual std::map<std::string, std::string> evidence() const { return {}; }
};

inline constexpr size_t kWorkspaceAlignment = 256;
// Returns `bytes`, rounded up to a multiple of kWorkspaceAlignment.
constexpr size_t workspaceAligned(size_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

// Measures how long each launch of one run takes. Records times on a stream: one time before the first launch, and one
// time after each launch. One thread at a time may use a LaunchClock.
class LaunchClock {
public:
  virtual ~LaunchClock() = default;
  // Records the time at which the stream reaches this point. On a GPU `mark` enqueues an event and does not wait.
  virtual Status mark(void *stream) = 0;
  // Waits for the last mark. Returns the milliseconds between each recorded time and the next one.
  virtual Result<std::vector<double>> spans() = 0;
};

class Device {
public:
  virtual ~Device() = default;

  virtual bool isGpu() const = 0;
  // Returns the device key, which names the model of the device, so that all cards of one model have the same key.
  // Choices are stored under the device key.
  virtual const std::string &key() const = 0;
  // Returns the compiler's name of the architecture: "cpu", "sm_90a", ...
  virtual const std::string &target() const = 0;
  // Returns the feature level that code for the CPU is made for; "" on a GPU.
  virtual std::string cpuFeatures() const { return ""; }
  // Returns the version of the CUDA driver: 12040 means 12.4; 0 on the CPU.
  virtual int driverVersion() const { return 0; }
  // Returns names and values for `nsa doctor`, the most interesting facts first.
  virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;

  virtual Result<std::unique_ptr<Kernel>> load(const Manifest &manifest, std::span<const std::byte> binary) = 0;
  virtual Result<bool> isCapturing(void *stream) const { return false; }
  // ignoreCaptures must be called on a thread that the library started. After ignoreCaptures, the calling thread may
  // call CUDA functions that are otherwise forbidden while the host captures a stream.
  virtual void ignoreCaptures() const {}
  // Returns the stream on which the library launches kernels that no caller asked for, such as those of tuning: NULL on
  // the CPU; on a GPU valid after the first successful allocation. The library's own stream neither waits for the
  // host's streams nor delays them. The legacy stream (null) would wait for the host's streams and delay them, and
  // would break a capture on any stream of the host.
  virtual void *ownStream() const { return nullptr; }
  // Returns the greatest number of programs that a grid may have along an axis.
  virtual int64_t gridLimit(int axis) const = 0;
  // Returns the number of multiprocessors of the device. The grid of a persistent kernel, whose programs loop over the
  // work, is computed from the number of multiprocessors.
  virtual int64_t multiprocessors() const = 0;

  // Returns a status word: kDeviceStatusWords integers in which a kernel reports lengths that break a rule. A status
  // word begins as zeros, and host and device address the same memory. On the CPU device acquireStatusWord returns
  // nullptr, because nsa_run checks the lengths of a CPU call on the host. The device allocates status words in slabs,
  // many words at a time. While the first slab has a free status word, acquireStatusWord allocates nothing and may be
  // called during a stream capture.
  virtual Result<int32_t *> acquireStatusWord() { return nullptr; }
  virtual void releaseStatusWord(int32_t *word) {}
  // Waits for `stream`, then reads the status word and clears it.
  virtual Result<DeviceReport> readStatusWord(int32_t *word, void *stream) { return DeviceReport(); }

  // The functions of Device from `allocate` to the end of the class are used for tuning.
  virtual Result<void *> allocate(size_t bytes) = 0;
  // Returns the bytes of memory that are free at this moment. SIZE_MAX means that the number of free bytes is not
  // known, as on the CPU.
  virtual Result<size_t> freeBytes() { return SIZE_MAX; }
  virtual void release(void *memory) = 0;
  virtual Status upload(void *to, const void *from, size_t bytes) = 0;
  virtual Status download(void *to, const void *from, size_t bytes) = 0;
  virtual std::unique_ptr<LaunchClock> makeClock() = 0;
  // Returns the milliseconds of one `launch`: the median of a few repetitions. On a GPU each repetition of the launch
  // begins with a cold L2.
  virtual Result<double> time(const std::function<Status(void *stream)> &launch) = 0;
  // Returns the resolution of the clock: two times that differ by less than the resolution cannot be told apart,
  // however often they are measured.
  virtual double timeResolutionMs() const = 0;
  // TuneOptions::stateShift and warmUpMs.
  virtual double stateShift() const = 0;
  virtual double warmUpMs() const { return 0; }
};

// Device memory that is freed with its DeviceBuffer. The allocation begins with `skipped` unused bytes, so that data()
// is at another address than the allocation.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer &&other) noexcept { *this = std::move(other); }
  DeviceBuffer &operator=(DeviceBuffer &&other) noexcept {
    std::swap(device, other.device);
    std::swap(memory, other.memory);
    std::swap(skipped, other.skipped);
    return *this;
  }
  ~DeviceBuffer() {
    if (memory)
      device->release(memory);
  }

  static Result<DeviceBuffer> allocate(Device &device, size_t bytes, size_t skipped = 0) {
    DeviceBuffer buffer;
    if (bytes == 0)
      return buffer;
    NSA_ASSIGN_OR_RETURN(void *memory, device.allocate(skipped + bytes));
    buffer.device = &device;
    buffer.memory = memory;
    buffer.skipped = skipped;
    return buffer;
  }
  void *data() const { return memory ? static_cast<std::byte *>(memory) + skipped : nullptr; }

private:
  Device *device = nullptr;
  void *memory = nullptr;
  size_t skipped = 0;
};

} // namespace nsa
