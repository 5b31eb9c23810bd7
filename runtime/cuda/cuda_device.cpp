#include "runtime/cuda/cuda_device.h"

#include "runtime/base/device_status.h"
#include "runtime/cuda/cuda_kernel.h"
#include "runtime/process/attempt.h"
#include "runtime/process/signals_blocked.h"

#include <atomic>
#include <exception>
#include <memory>
#include <pthread.h>

namespace nsa::cuda {

namespace {

// The threads that are making contexts. The process's end waits for them: the driver must not end under them. It is
// made after the driver was opened, so it goes before it.
class Starters {
public:
  static Starters &all() {
    static Starters starters;
    starters.forgetParents();
    return starters;
  }
  ~Starters() {
    forgetParents();
    std::unique_lock lock(mutex);
    ended.wait(lock, [this] { return running == 0; });
  }
  void count(int change) {
    std::lock_guard lock(mutex);
    running += change;
    ended.notify_all();
  }

private:
  // A fork's child has none of its parent's threads, and one of them may have held the lock.
  void forgetParents() {
    if (generation.exchange(processGeneration()) == processGeneration())
      return;
    std::construct_at(&mutex);
    std::construct_at(&ended);
    running = 0;
  }

  std::atomic<uint32_t> generation = processGeneration();
  std::mutex mutex;
  std::condition_variable ended;
  int running = 0;
};

} // namespace

CudaDevice::CudaDevice(const Driver &driver, DeviceInfo info)
    : driver(driver), info(std::move(info)), deviceKey(this->info.key()), context(driver, this->info.device) {}

Result<std::unique_ptr<Device>> CudaDevice::open(int ordinal, Start start) {
  NSA_ASSIGN_OR_RETURN(const Driver *driver, Driver::get());
  NSA_ASSIGN_OR_RETURN(DeviceInfo info, readDeviceInfo(*driver, ordinal));
  std::unique_ptr<CudaDevice> device(new CudaDevice(*driver, std::move(info)));
  if (start == Start::kBeside && !device->hasContext())
    device->startBeside();
  else
    device->finish(device->start());
  if (device->isStarted.load())
    NSA_RETURN_IF_ERROR(device->startStatus);
  return std::unique_ptr<Device>(std::move(device));
}

bool CudaDevice::hasContext() const {
  unsigned flags = 0;
  int active = 0;
  return driver.devicePrimaryCtxGetState(info.device, &flags, &active) != kSuccess || active;
}

void CudaDevice::startBeside() {
  Starters &starters = Starters::all();
  starters.count(1);
  auto tryStart = [this] { return attempt("to make a context", [this] { return start(); }); };
  try {
    SignalsBlocked blocked;
    starter = std::thread([this, &starters, tryStart] {
      ignoreCaptures(); // which the host may begin as soon as there is a context
      finish(tryStart());
      starters.count(-1);
    });
    pthread_setname_np(starter.native_handle(), "nsa-context");
  } catch (const std::exception &) { // no thread is to be had, or no memory for one
    finish(tryStart());
    starters.count(-1);
  }
}

void CudaDevice::ignoreCaptures() const {
  CaptureMode mode = CaptureMode::kRelaxed;
  driver.threadExchangeCaptureMode(&mode);
}

void CudaDevice::finish(Status status) {
  std::lock_guard lock(startMutex);
  startStatus = std::move(status);
  isStarted.store(true);
  startEnded.notify_all();
}

Status CudaDevice::ready() const {
  if (!isStarted.load(std::memory_order_acquire)) {
    NSA_RETURN_IF_ERROR(context.checkProcess());
    std::unique_lock lock(startMutex);
    startEnded.wait(lock, [this] { return isStarted.load(); });
  }
  return startStatus;
}

Status CudaDevice::start() {
  NSA_RETURN_IF_ERROR(context.retain());
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  // Non-blocking: it must not wait for, or hold up, the host's work on the legacy stream.
  NSA_CUDA_CALL(driver, streamCreate, (&stream, kStreamNonBlocking));
  statusWords.emplace(context);
  timer.emplace(context, stream, static_cast<size_t>(info.l2Bytes) * 2);
  return statusWords->addSlab(); // now, while nothing captures
}

CudaDevice::~CudaDevice() {
  if (starter.joinable()) {
    if (context.inOwnProcess())
      starter.join();
    else
      starter.detach();
  }
  timer.reset();
  statusWords.reset();
  if (stream && context.inOwnProcess()) {
    ContextScope scope(context);
    driver.streamDestroy(stream);
  }
}

std::vector<std::pair<std::string, std::string>> CudaDevice::facts() const {
  return {{"name", info.name},
          {"ordinal", std::to_string(info.ordinal)},
          {"compute_capability", std::to_string(info.computeMajor) + "." + std::to_string(info.computeMinor)},
          {"target", info.target},
          {"driver", versionText(driver.version())},
          {"multiprocessors", std::to_string(info.multiprocessors)},
          {"memory_bytes", std::to_string(info.memoryBytes)},
          {"l2_bytes", std::to_string(info.l2Bytes)},
          {"bandwidth_gbs", std::to_string(info.bandwidthGBs)},
          {"shared_bytes_per_block", std::to_string(info.sharedBytesOptIn)}};
}

Result<std::unique_ptr<Kernel>> CudaDevice::load(const Manifest &manifest, std::span<const std::byte> binary) {
  NSA_RETURN_IF_ERROR(ready());
  return CudaKernel::load(context, info, manifest, binary);
}

Result<bool> CudaDevice::isCapturing(void *hostStream) const {
  // Nothing captures where there is no context: who names the legacy stream meanwhile need not wait for it.
  if (!hostStream && context.inOwnProcess() && !isStarted.load())
    return false;
  NSA_RETURN_IF_ERROR(ready());
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  CaptureStatus status = CaptureStatus::kNone;
  DriverResult result = driver.streamIsCapturing(static_cast<Stream>(hostStream), &status);
  // The legacy stream was named while a blocking stream captures: using it would break that capture.
  if (result == kErrorStreamCaptureImplicit)
    return true;
  if (result != kSuccess)
    return driver.check(result, "streamIsCapturing");
  return status != CaptureStatus::kNone;
}

int64_t CudaDevice::gridLimit(int axis) const { return axis == 0 ? 2147483647 : 65535; }

Result<int32_t *> CudaDevice::acquireStatusWord() {
  NSA_RETURN_IF_ERROR(ready());
  return statusWords->acquire();
}

Result<DeviceReport> CudaDevice::readStatusWord(int32_t *word, void *hostStream) {
  NSA_RETURN_IF_ERROR(ready());
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  // Waiting would end the capture with an error of its own.
  NSA_ASSIGN_OR_RETURN(bool capturing, isCapturing(hostStream));
  if (capturing) {
    return Status(ErrorInfo{.code = ErrorCode::kCapturing,
                            .field = "stream",
                            .value = "capturing",
                            .rule = "the status word is read when its kernels have run, and a captured one has not",
                            .hint = "ask after the graph was launched"});
  }
  NSA_CUDA_CALL(driver, streamSynchronize, (static_cast<Stream>(hostStream)));
  // Of several threads that ask at once one takes a report. Without a code the place means nothing and may stay.
  const int32_t code = std::atomic_ref(word[0]).exchange(0);
  return DeviceReport{code, std::atomic_ref(word[1]).load()};
}

Result<void *> CudaDevice::allocate(size_t bytes) {
  NSA_RETURN_IF_ERROR(ready());
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  DevicePointer pointer = 0;
  NSA_CUDA_CALL(driver, memAlloc, (&pointer, bytes));
  return reinterpret_cast<void *>(pointer);
}

Result<size_t> CudaDevice::freeBytes() {
  NSA_RETURN_IF_ERROR(ready());
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  size_t free = 0, total = 0;
  NSA_CUDA_CALL(driver, memGetInfo, (&free, &total));
  return free;
}

void CudaDevice::release(void *memory) {
  if (!context.inOwnProcess())
    return;
  ContextScope scope(context);
  driver.memFree(reinterpret_cast<DevicePointer>(memory));
}

Status CudaDevice::upload(void *to, const void *from, size_t bytes) {
  NSA_RETURN_IF_ERROR(ready());
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  NSA_CUDA_CALL(driver, memcpyHtoDAsync, (reinterpret_cast<DevicePointer>(to), from, bytes, stream));
  NSA_CUDA_CALL(driver, streamSynchronize, (stream));
  return Status::ok();
}

Status CudaDevice::download(void *to, const void *from, size_t bytes) {
  NSA_RETURN_IF_ERROR(ready());
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  NSA_CUDA_CALL(driver, memcpyDtoHAsync, (to, reinterpret_cast<DevicePointer>(from), bytes, stream));
  NSA_CUDA_CALL(driver, streamSynchronize, (stream));
  return Status::ok();
}

Result<double> CudaDevice::time(const std::function<Status(void *stream)> &launch) {
  NSA_RETURN_IF_ERROR(ready());
  std::lock_guard lock(timerMutex);
  return timer->time(launch);
}

} // namespace nsa::cuda
