// An Accelerator is the device that an engine runs on: it allocates memory, copies, measures time and has a stream.
// Code that uses an Accelerator can call the C ABI for the device "cpu" and for "cuda:N" in the same way. On the CPU a
// buffer is host memory and a copy is memcpy.
// Ownership: buffers must not outlive their accelerator.
// Thread-safety: one thread at a time may use an Accelerator.
#pragma once

#include "runtime/base/status.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace nsa::tools {

class Accelerator;

// The number of guard bytes on each side of a buffer. The guard bytes are longer than one head's row in any tensor, so
// a write to the row in front of the buffer or behind it is found. In a build with the address sanitizer, buffers have
// no guard bytes, because the sanitizer itself finds writes of the library outside of a buffer.
#ifdef NSA_ADDRESS_SANITIZER
inline constexpr size_t kGuardBytes = 0;
#else
inline constexpr size_t kGuardBytes = 4096;
#endif

// Work that was recorded once and can be enqueued again at a fraction of the cost: a CUDA graph. On the CPU a
// recording is the function that does the work. Recorded work must not outlive its accelerator.
using Recording = std::function<Status()>;

// Device memory, aligned to 256 bytes, which its object frees. Guard bytes are in front of a buffer and behind it.
class Buffer {
public:
  Buffer() = default;
  Buffer(Buffer &&other) noexcept;
  Buffer &operator=(Buffer &&other) noexcept;
  ~Buffer();

  void *data() const { return pointer; }
  size_t size() const { return bytes; }

private:
  friend class Accelerator;
  Accelerator *owner = nullptr;
  void *pointer = nullptr; // behind the front guard
  size_t bytes = 0;
};

class Accelerator {
public:
  // Opens "cpu" or "cuda:N". `open` returns the error "unavailable" if there is no driver, and "invalid" if `device` is
  // neither "cpu" nor "cuda:N" or names a device that does not exist.
  static Result<std::unique_ptr<Accelerator>> open(const std::string &device);
  virtual ~Accelerator() = default;

  virtual bool isCuda() const = 0;
  virtual void *stream() const = 0; // for the C ABI; null on the CPU
  Result<Buffer> allocate(size_t bytes);
  // The check fails, and names the buffer, when a byte in front of the buffer or behind it was written.
  Status checkGuards(const Buffer &buffer, std::string_view name);
  virtual Status upload(void *to, const void *from, size_t bytes) = 0;
  virtual Status download(void *to, const void *from, size_t bytes) = 0;
  virtual Status fill(void *to, unsigned char value, size_t bytes) = 0;
  virtual Status synchronize() = 0;
  // Calls `enqueue` and returns the milliseconds that its work takes. On a GPU, CUDA events measure the work that
  // `enqueue` puts on the stream. On the CPU, a steady clock measures the call of `enqueue`.
  virtual Result<double> time(const std::function<Status()> &enqueue) = 0;
  // Records the work that `enqueue` puts on the stream. On a GPU recording does not run the work.
  virtual Result<Recording> record(const std::function<Status()> &enqueue) = 0;
  // Records the launches of `count` kernels that do nothing, one after another. On the CPU a recording of empty kernels
  // does nothing when it is replayed.
  virtual Result<Recording> recordEmptyKernels(int count) = 0;

protected:
  friend class Buffer;
  virtual Result<void *> allocateBytes(size_t bytes) = 0;
  virtual void release(void *pointer) = 0;
};

} // namespace nsa::tools
