// The memory and the queue of work of the device that the engine runs on. A host that runs models has these already.
// Ownership: buffers must not outlive their device. Thread-safety: one thread at a time. What fails throws
// std::runtime_error.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace example {

class Device;

// Device memory, aligned to 256 bytes at least.
class Buffer {
public:
  Buffer() = default;
  Buffer(Device &device, std::size_t bytes);
  Buffer(Buffer &&other) noexcept { *this = std::move(other); }
  Buffer &operator=(Buffer &&other) noexcept {
    std::swap(device, other.device);
    std::swap(memory, other.memory);
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~Buffer();

  void *data() const { return memory; }
  std::size_t size() const { return bytes; }

private:
  Device *device = nullptr;
  void *memory = nullptr;
  std::size_t bytes = 0;
};

class Device {
public:
  // "cpu" or "cuda:N".
  static std::unique_ptr<Device> open(const std::string &name);
  virtual ~Device() = default;

  // For the library: a CUstream, null on the CPU.
  virtual void *stream() const = 0;
  // In the order of the stream. The host's memory may be used again when they return.
  virtual void upload(void *to, const void *from, std::size_t bytes) = 0;
  virtual void download(void *to, const void *from, std::size_t bytes) = 0;
  virtual void fill(void *to, unsigned char value, std::size_t bytes) = 0;
  // What does the work of `enqueue` each time it is called. On a GPU that is captured once, into a CUDA graph, and
  // launched from then on; on the CPU it is `enqueue` itself.
  virtual std::function<void()> repeatable(std::function<void()> enqueue) = 0;

  template <typename T> void upload(const Buffer &to, const std::vector<T> &from) {
    upload(to.data(), from.data(), from.size() * sizeof(T));
  }
  // The first `count` elements.
  template <typename T> std::vector<T> download(const Buffer &from, std::size_t count) {
    std::vector<T> values(count);
    download(values.data(), from.data(), count * sizeof(T));
    return values;
  }

private:
  friend class Buffer;
  virtual void *allocate(std::size_t bytes) = 0;
  virtual void release(void *memory) = 0;
};

std::unique_ptr<Device> openCudaDevice(int ordinal); // cuda_device.cpp

} // namespace example
