// What the engine needs of a device: load a kernel, launch it, and for tuning memory, copies and a clock.
// Implemented by the CPU executor (runtime/cpu) and the CUDA driver (runtime/cuda); nothing above sees either.
// Ownership: an engine owns its device; kernels and buffers must be gone before it.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/base/manifest.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_map.h"
#include "runtime/engine/launch_clock.h"

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

// A kernel that is loaded and ready: launching it does no lazy work.
class Kernel {
public:
  virtual ~Kernel() = default;
  // `slots` are the arguments in the manifest's order. Allocates nothing and, on a GPU, returns at once.
  // `workspace` has workspaceBytes() bytes, aligned to kWorkspaceAlignment.
  virtual Status launch(const uint64_t *slots, const int32_t (&grid)[3], void *workspace, void *stream) const = 0;
  virtual size_t workspaceBytes() const = 0;
  // Writes the map of a shape into an argument's slots; only for a GPU's kernels, which alone have such. Allocates
  // nothing.
  virtual Status writeMap(const TensorMapShape &shape, uint64_t *slots) const = 0;
  // Numbers the device knows about the loaded code: registers, local bytes. Empty on the CPU.
  virtual std::map<std::string, std::string> evidence() const { return {}; }
};

inline constexpr size_t kWorkspaceAlignment = 256;

class Device {
public:
  virtual ~Device() = default;

  virtual bool isGpu() const = 0;
  // Names the model, never the specimen: choices are stored under it.
  virtual const std::string &key() const = 0;
  // The compiler's name of the architecture: "cpu", "sm_90a", ...
  virtual const std::string &target() const = 0;
  // The feature level CPU code is made for; "" on a GPU.
  virtual std::string cpuFeatures() const { return ""; }
  // The CUDA driver's version, 12040 = 12.4; 0 on the CPU.
  virtual int driverVersion() const { return 0; }
  // Facts in order of interest for `nsa doctor`, name -> value.
  virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;

  virtual Result<std::unique_ptr<Kernel>> load(const Manifest &manifest, std::span<const std::byte> binary) = 0;
  virtual Result<bool> isCapturing(void *stream) const { return false; }
  // The calling thread is the library's own: what it does is none of the affair of a capture that the host begins.
  virtual void ignoreCaptures() const {}
  // For what the library launches of its own accord: it neither waits for the host's streams nor holds them up, as the
  // legacy stream (null) does, which besides breaks a capture on any of them. Null on the CPU. Once memory was had.
  virtual void *ownStream() const { return nullptr; }
  // Largest grid, per axis.
  virtual int64_t gridLimit(int axis) const = 0;
  // For kernels whose programs stay and take one piece of work after another: how many run beside each other.
  virtual int64_t multiprocessors() const = 0;

  // The kDeviceStatusWords integers, zero at first, in which a kernel reports lengths that break a rule: memory that
  // host and device both address. The CPU needs none (nullptr): its plans check on the host. Acquiring allocates
  // nothing while words of the first slab are free, so it is legal during capture.
  virtual Result<int32_t *> acquireStatusWord() { return nullptr; }
  virtual void releaseStatusWord(int32_t *word) {}
  // Waits for `stream`, then reads the word and clears it.
  virtual Status readStatusWord(int32_t *word, void *stream) { return Status::ok(); }

  // Memory and time, for the tuner.
  virtual Result<void *> allocate(size_t bytes) = 0;
  // What it has left at this moment; where that is not known, as on the CPU, more than there is.
  virtual Result<size_t> freeBytes() { return SIZE_MAX; }
  virtual void release(void *memory) = 0;
  virtual Status upload(void *to, const void *from, size_t bytes) = 0;
  virtual Status download(void *to, const void *from, size_t bytes) = 0;
  // For the launches of one run.
  virtual std::unique_ptr<LaunchClock> makeClock() = 0;
  // Milliseconds of one `launch`, median of a few repetitions. On a GPU each begins with a cold L2.
  virtual Result<double> time(const std::function<Status(void *stream)> &launch) = 0;
  // Two times that differ by less cannot be told apart, however often they are taken.
  virtual double timeResolutionMs() const = 0;
  // TuneOptions::stateShift and warmUpMs.
  virtual double stateShift() const = 0;
  virtual double warmUpMs() const { return 0; }
};

// Device memory that frees itself. `skipped` bytes before it are left unused, so that it lies elsewhere.
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
    Result<void *> memory = device.allocate(skipped + bytes);
    if (!memory)
      return memory.status();
    buffer.device = &device;
    buffer.memory = *memory;
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
