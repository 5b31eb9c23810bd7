#include "runtime/cpu/cpu_device.h"

#include "runtime/base/cpu_features.h"
#include "runtime/cpu/cpu_kernel.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <sched.h>
#include <thread>

namespace nsa::cpu {

namespace {

// One long run tells as much as several short ones: what disturbs it is a smaller part of it.
constexpr int kTimingRepetitions = 3;
constexpr double kEnoughMs = 5;
// Of runs of microseconds the first ones meet cold caches.
constexpr int kMostTimingRepetitions = 15;
constexpr double kShortMs = 0.1;
// The clock itself, and what a call's own entry takes sometimes more and sometimes less.
constexpr double kResolutionMs = 1e-4;
// Beside a busy neighbour on the same core kernels take half as long again, some a tenth more than others
// (docs/tuning.md).
constexpr double kStateShift = 0.15;

// The cores this process may use, which in a container are fewer than the machine has.
int usableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return std::max(CPU_COUNT(&set), 1);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

// A launch returns when the kernel has ended.
class SteadyClock final : public LaunchClock {
public:
  Status mark(void *) override {
    moments.push_back(std::chrono::steady_clock::now());
    return Status::ok();
  }
  Result<std::vector<double>> spans() override {
    std::vector<double> result;
    for (size_t i = 1; i < moments.size(); ++i)
      result.push_back(std::chrono::duration<double, std::milli>(moments[i] - moments[i - 1]).count());
    return result;
  }

private:
  std::vector<std::chrono::steady_clock::time_point> moments;
};

} // namespace

CpuDevice::CpuDevice(int threads, std::string features)
    : features(std::move(features)), deviceKey("cpu " + this->features), pool(threads) {}

std::unique_ptr<LaunchClock> CpuDevice::makeClock() { return std::make_unique<SteadyClock>(); }

Result<std::unique_ptr<Device>> CpuDevice::open(int threads, const std::string &features) {
  std::string host(hostCpuFeatures());
  if (host.empty()) {
    ErrorInfo info;
    info.code = ErrorCode::kUnsupported;
#if defined(__x86_64__)
    info.message = "this processor lacks the instructions that CPU kernels use";
    info.hint = "the CPU device needs AVX2 and FMA (x86-64-v3)";
#else
    info.message = "there are CPU kernels for x86-64 processors alone, and this is none";
    info.hint = "use a GPU, device \"cuda:0\"";
#endif
    return Status(std::move(info));
  }
  std::string chosen = features.empty() ? host : features;
  NSA_ASSIGN_OR_RETURN(int lanes, cpuVectorLanes(chosen));
  if (lanes > *cpuVectorLanes(host))
    return Status::invalid("cpu_features", chosen, "this processor has only " + host);
  return std::unique_ptr<Device>(new CpuDevice(threads > 0 ? threads : usableCores(), std::move(chosen)));
}

std::vector<std::pair<std::string, std::string>> CpuDevice::facts() const {
  return {{"name", "cpu"}, {"target", targetName}, {"features", features}, {"threads", std::to_string(pool.threads())}};
}

Result<std::unique_ptr<Kernel>> CpuDevice::load(const Manifest &manifest, std::span<const std::byte> binary) {
  // A driver refuses a cubin of another GPU. Nothing but this check refuses instructions that the processor lacks,
  // whatever row named the kernel.
  if (const auto needed = manifest.evidence.find("features"); needed != manifest.evidence.end()) {
    const Result<int> lanes = cpuVectorLanes(needed->second);
    if (!lanes || *lanes > *cpuVectorLanes(features))
      return Status::invalid("features", needed->second, "must be " + features + " or less, as the CPU device is");
  }
  return CpuKernel::load(pool, manifest, binary);
}

Result<void *> CpuDevice::allocate(size_t bytes) {
  void *memory = ::operator new(bytes, std::align_val_t(kWorkspaceAlignment), std::nothrow);
  if (!memory)
    return Status::error(ErrorCode::kOutOfMemory, "no memory for " + std::to_string(bytes) + " bytes");
  return memory;
}

void CpuDevice::release(void *memory) { ::operator delete(memory, std::align_val_t(kWorkspaceAlignment)); }

Status CpuDevice::upload(void *to, const void *from, size_t bytes) {
  if (bytes != 0) // nothing may come from nowhere
    memcpy(to, from, bytes);
  return Status::ok();
}

Status CpuDevice::download(void *to, const void *from, size_t bytes) {
  if (bytes != 0) // nothing may come from nowhere
    memcpy(to, from, bytes);
  return Status::ok();
}

Result<double> CpuDevice::time(const std::function<Status(void *stream)> &launch) {
  std::lock_guard lock(timeMutex);
  double milliseconds[kMostTimingRepetitions];
  int count = 0;
  double total = 0;
  while (count < (total < kShortMs ? kMostTimingRepetitions : kTimingRepetitions) && total < kEnoughMs) {
    double &elapsed = milliseconds[count++];
    auto start = std::chrono::steady_clock::now();
    NSA_RETURN_IF_ERROR(launch(nullptr));
    elapsed = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    total += elapsed;
  }
  std::sort(milliseconds, milliseconds + count);
  return milliseconds[count / 2];
}

double CpuDevice::timeResolutionMs() const { return kResolutionMs; }

double CpuDevice::stateShift() const { return kStateShift; }

} // namespace nsa::cpu
