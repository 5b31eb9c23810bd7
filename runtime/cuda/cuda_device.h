// One GPU behind the engine's Device interface: primary context, modules, status words, tuning memory and clock.
// What describes the device needs no context. So the context can be made by a thread of the device's own while the
// caller compiles; whatever needs it waits for it, and has its error.
// Thread-safety: as Device.
#pragma once

#include "runtime/cuda/context.h"
#include "runtime/cuda/device_info.h"
#include "runtime/cuda/event_clock.h"
#include "runtime/cuda/event_timer.h"
#include "runtime/cuda/status_words.h"
#include "runtime/engine/device.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace nsa::cuda {

class CudaDevice final : public Device {
public:
  // kBeside: where the process has no context on the device yet, it is made by a thread, and an error of it is that of
  // the first call that needs it.
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
  Status readStatusWord(int32_t *word, void *stream) override;

  Result<void *> allocate(size_t bytes) override;
  Result<size_t> freeBytes() override;
  void release(void *memory) override;
  Status upload(void *to, const void *from, size_t bytes) override;
  Status download(void *to, const void *from, size_t bytes) override;
  std::unique_ptr<LaunchClock> makeClock() override { return std::make_unique<EventClock>(context); }
  Result<double> time(const std::function<Status(void *stream)> &launch) override;
  double timeResolutionMs() const override { return EventTimer::kResolutionMs; }
  double stateShift() const override { return 0; } // one context at a time has all of a multiprocessor
  double warmUpMs() const override { return 100; } // the power limit of an H200 is felt within that time

private:
  CudaDevice(const Driver &driver, DeviceInfo info);
  Status start();
  bool hasContext() const; // somebody's
  void startBeside();
  void finish(Status status);
  // Ok once the context is there and all that hangs on it; waits for that. At once in the child of a fork, whose
  // thread is not there.
  Status ready() const;

  const Driver &driver;
  DeviceInfo info;
  std::string deviceKey;
  PrimaryContext context;
  Stream stream = nullptr; // own, for copies and tuning
  std::optional<StatusWords> statusWords;
  std::mutex timerMutex;
  std::optional<EventTimer> timer;

  mutable std::mutex startMutex;
  mutable std::condition_variable startEnded;
  std::atomic<bool> isStarted = false; // start() has ended
  Status startStatus;                  // then
  std::thread starter;
};

} // namespace nsa::cuda
