// What the engine needs of a device: it loads a kernel, launches it, and for tuning gives memory, copies and a clock.
// The CPU executor (runtime/cpu) and the CUDA driver (runtime/cuda) implement it, and no code above depends on either.
// Ownership: an engine owns its device. Kernels and buffers must be destroyed before it.
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

// A loaded kernel. Launching it does no lazy work.
class Kernel {
public:
  virtual ~Kernel() = default;
  // Launches a grid. `slots` are the arguments in the manifest's order. `workspace` has workspaceBytes() bytes, aligned
  // to kWorkspaceAlignment. Allocates nothing and, on a GPU, returns at once.
  virtual Status launch(const uint64_t *slots, const int32_t (&grid)[3], void *workspace, void *stream) const = 0;
  virtual size_t workspaceBytes() const = 0;
  // Writes the tensor map of a shape into an argument's slots. Only kernels of a GPU have such arguments. Allocates
  // nothing.
  virtual Status writeMap(const TensorMapShape &shape, uint64_t *slots) const = 0;
  // Numbers that the device knows about the loaded code: registers, bytes of local memory. Empty on the CPU.
  virtual std::map<std::string, std::string> evidence() const { return {}; }
};

inline constexpr size_t kWorkspaceAlignment = 256;

class Device {
public:
  virtual ~Device() = default;

  virtual bool isGpu() const = 0;
  // Names the device's model and never one card. Choices are stored under this name.
  virtual const std::string &key() const = 0;
  // The compiler's name of the architecture: "cpu", "sm_90a", ...
  virtual const std::string &target() const = 0;
  // The feature level that code for the CPU is made for. "" on a GPU.
  virtual std::string cpuFeatures() const { return ""; }
  // The version of the CUDA driver; 12040 means 12.4. 0 on the CPU.
  virtual int driverVersion() const { return 0; }
  // Names and values for `nsa doctor`, the most interesting ones first.
  virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;

  virtual Result<std::unique_ptr<Kernel>> load(const Manifest &manifest, std::span<const std::byte> binary) = 0;
  virtual Result<bool> isCapturing(void *stream) const { return false; }
  // Must be called on a thread that the library began. Afterwards a stream capture that the host begins does not
  // concern what this thread does.
  virtual void ignoreCaptures() const {}
  // The stream for launches that the library makes on its own account. It neither waits for the host's streams nor
  // delays them. The legacy stream (null) would do both, and would break a capture on any of those streams. NULL on the
  // CPU; on a GPU valid after the first successful allocation.
  virtual void *ownStream() const { return nullptr; }
  // The largest grid along an axis.
  virtual int64_t gridLimit(int axis) const = 0;
  // How many multiprocessors there are, for kernels whose programs stay and take one piece of work after another.
  virtual int64_t multiprocessors() const = 0;

  // The kDeviceStatusWords integers in which a kernel reports lengths that break a rule. They begin as zeros, and host
  // and device address the same memory. The CPU returns nullptr, because its plans check on the host. Acquiring
  // allocates nothing while the first slab has a free word, so it is legal during a capture.
  virtual Result<int32_t *> acquireStatusWord() { return nullptr; }
  virtual void releaseStatusWord(int32_t *word) {}
  // Waits for `stream`, then reads the word and clears it.
  virtual Status readStatusWord(int32_t *word, void *stream) { return Status::ok(); }

  // The tuner needs the memory and the times below.
  virtual Result<void *> allocate(size_t bytes) = 0;
  // Bytes of memory that are free at this moment. SIZE_MAX where that is not known, as on the CPU.
  virtual Result<size_t> freeBytes() { return SIZE_MAX; }
  virtual void release(void *memory) = 0;
  virtual Status upload(void *to, const void *from, size_t bytes) = 0;
  virtual Status download(void *to, const void *from, size_t bytes) = 0;
  // A clock for the launches of one run.
  virtual std::unique_ptr<LaunchClock> makeClock() = 0;
  // Milliseconds of one `launch`: the median of a few repetitions. On a GPU each repetition begins with a cold L2.
  virtual Result<double> time(const std::function<Status(void *stream)> &launch) = 0;
  // The resolution of the clock: two times that differ by less cannot be told apart, however often they are measured.
  virtual double timeResolutionMs() const = 0;
  // TuneOptions::stateShift and warmUpMs.
  virtual double stateShift() const = 0;
  virtual double warmUpMs() const { return 0; }
};

// Device memory that its object frees. The allocation begins with `skipped` unused bytes, which move the data to
// another place.
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
