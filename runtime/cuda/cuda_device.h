// Implements the engine's interface Device for one GPU: it has the primary CUDA context, loads cubins, allocates status
// words, and has device memory and clocks for tuning. Reading the device's name, its target and its limits needs no
// CUDA context. A separate thread can create the CUDA context while the caller compiles kernels. Functions that need
// the context wait until it exists, and fail if the context cannot be created.
// Thread-safety: as Device.
#pragma once

#include "runtime/cuda/context.h"
#include "runtime/cuda/device_info.h"
#include "runtime/cuda/events.h"
#include "runtime/cuda/status_words.h"
#include "runtime/device/device.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace nsa::cuda {

class CudaDevice final : public Device {
public:
  // With kAtOnce, `open` makes the CUDA context before it returns. With kBeside, a new thread makes the context if the
  // process has no context on the device yet. If the new thread fails, every function that needs the context returns
  // the thread's error.
  enum class Start { kAtOnce, kBeside };
  static Result<std::unique_ptr<Device>> open(int ordinal, Start start = Start::kAtOnce);
  ~CudaDevice() override;

  bool isGpu() const override { return true; }
  const std::string &key() const override { return deviceKey; }
  const std::string &target() const override { return info.target; }
  int driverVersion() const override { return driver.version(); }
  std::vector<std::pair<std::string, std::string>> facts() const override;

  Result<std::unique_ptr<Kernel>> load(const Manifest &manifest, std::span<const std::byte> binary) override;
  Result<bool> isCapturing(void *stream) const override;
  void ignoreCaptures() const override;
  void *ownStream() const override { return stream; }
  int64_t gridLimit(int axis) const override;
  int64_t multiprocessors() const override { return info.multiprocessors; }

  Result<int32_t *> acquireStatusWord() override;
  void releaseStatusWord(int32_t *word) override { statusWords->release(word); }
  Result<DeviceReport> readStatusWord(int32_t *word, void *stream) override;

  Result<void *> allocate(size_t bytes) override;
  Result<size_t> freeBytes() override;
  void release(void *memory) override;
  Status upload(void *to, const void *from, size_t bytes) override;
  Status download(void *to, const void *from, size_t bytes) override;
  std::unique_ptr<LaunchClock> makeClock() override { return std::make_unique<EventClock>(context); }
  Result<double> time(const std::function<Status(void *stream)> &launch) override;
  double timeResolutionMs() const override { return EventTimer::kResolutionMs; }
  double stateShift() const override { return 0; } // one context at a time has all of a multiprocessor
  double warmUpMs() const override { return 100; } // an H200 reaches its power limit within that time

private:
  CudaDevice(const Driver &driver, DeviceInfo info);
  Status start();
  bool hasContext() const; // whether any part of the process has a context
  void startBeside();
  void finish(Status status);
  // Waits until the CUDA context, the stream, the status words and the timer exist. If one of them could not be
  // created, `ready` returns the error. In the child of a fork `ready` does not wait, because the thread that makes the
  // context does not exist in the child.
  Status ready() const;

  const Driver &driver;
  DeviceInfo info;
  std::string deviceKey;
  PrimaryContext context;
  Stream stream = nullptr; // the device's own, for copies and tuning
  std::optional<StatusWords> statusWords;
  std::mutex timerMutex;
  std::optional<EventTimer> timer;

  mutable std::mutex startMutex;
  mutable std::condition_variable startEnded;
  std::atomic<bool> isStarted = false; // start() has ended and startStatus is set
  Status startStatus;
  std::thread starter;
};

} // namespace nsa::cuda
