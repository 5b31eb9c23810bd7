#include "runtime/cpu/worker_pool.h"

#include "runtime/process/process.h"
#include "runtime/process/signals_blocked.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <new>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace nsa::cpu {

namespace {

constexpr size_t kScratchAlignment = 64;

// Results must not depend on a rounding mode or flush-to-zero flag that the host has set on some thread.
class [[maybe_unused]] DefaultFloatMode {
#if defined(__x86_64__)
public:
  DefaultFloatMode() : saved(_mm_getcsr()) { _mm_setcsr(0x1f80); } // MXCSR's state at reset: all masked, to nearest
  ~DefaultFloatMode() { _mm_setcsr(saved); }

private:
  unsigned saved;
#endif
};

struct ScratchDeleter {
  void operator()(std::byte *memory) const { ::operator delete[](memory, std::align_val_t(kScratchAlignment)); }
};
using ScratchMemory = std::unique_ptr<std::byte[], ScratchDeleter>;

// One run that workers may join. A worker announces itself in `visitors` before it looks at `phase`, the caller
// sets kClosing before it looks at `visitors` (both sequentially consistent): so when the caller finds no visitor,
// every program is done and no worker will touch the slots again.
struct alignas(64) Job {
  enum Phase : uint32_t { kFree, kFilling, kOpen, kClosing };
  std::atomic<uint32_t> phase{kFree};
  std::atomic<uint32_t> visitors{0};
  KernelFunction kernel = nullptr;
  const uint64_t *slots = nullptr;
  int32_t grid[3] = {};
  int64_t programs = 0;
  int64_t chunk = 1;
  alignas(64) std::atomic<int64_t> next{0};

  void work(void *scratch) {
    for (;;) {
      int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= programs)
        return;
      int64_t end = std::min(begin + chunk, programs);
      for (int64_t program = begin; program < end; ++program) {
        int64_t row = program / grid[0];
        const int32_t id[3] = {static_cast<int32_t>(program % grid[0]), static_cast<int32_t>(row % grid[1]),
                               static_cast<int32_t>(row / grid[1])};
        kernel(slots, id, scratch);
      }
    }
  }
};

// Runs that are under way at once and get help; the next one's caller works alone.
constexpr size_t kJobs = 16;

} // namespace

// The threads of one process generation.
struct WorkerPool::Crew {
  struct alignas(64) Worker {
    std::atomic<std::byte *> scratch{nullptr};
    std::vector<ScratchMemory> memory; // grown, never shrunk: a run may still use the older one
    std::jthread thread;
  };

  uint32_t generation = processGeneration();
  Job jobs[kJobs];
  alignas(64) std::atomic<uint32_t> epoch{0}; // raised when a job opens or the pool ends
  std::atomic<bool> ending{false};
  std::vector<Worker> workers;

  explicit Crew(int count) : workers(static_cast<size_t>(count)) {
    SignalsBlocked blocked;
    for (Worker &worker : workers) {
      try {
        worker.thread = std::jthread([this, &worker] { serve(worker); });
        pthread_setname_np(worker.thread.native_handle(), "nsa-worker");
      } catch (const std::exception &) {
        break; // fewer threads than wished: those that exist, and the caller, do the work
      }
    }
  }

  ~Crew() {
    ending.store(true);
    wake();
  }

  void wake() {
    epoch.fetch_add(1);
    epoch.notify_all();
  }

  bool grow(size_t bytes) {
    for (Worker &worker : workers) {
      ScratchMemory memory(new (std::align_val_t(kScratchAlignment), std::nothrow) std::byte[bytes]);
      if (!memory)
        return false;
      worker.memory.push_back(std::move(memory));
      worker.scratch.store(worker.memory.back().get(), std::memory_order_release);
    }
    return true;
  }

  void serve(Worker &worker) {
    DefaultFloatMode mode;
    for (;;) {
      uint32_t seen = epoch.load();
      if (ending.load())
        return;
      for (Job &job : jobs) {
        if (job.phase.load() != Job::kOpen)
          continue;
        job.visitors.fetch_add(1);
        if (job.phase.load() == Job::kOpen)
          job.work(worker.scratch.load(std::memory_order_acquire));
        if (job.visitors.fetch_sub(1) == 1 && job.phase.load() == Job::kClosing)
          job.visitors.notify_all();
      }
      epoch.wait(seen);
    }
  }

  Job *claim() {
    for (Job &job : jobs) {
      uint32_t free = Job::kFree;
      if (job.phase.compare_exchange_strong(free, Job::kFilling))
        return &job;
    }
    return nullptr;
  }
};

WorkerPool::WorkerPool(int threads) : threadCount(std::max(threads, 1)), current(new Crew(threadCount - 1)) {}

WorkerPool::~WorkerPool() {
  Crew *crew = current.load();
  // In a child of a fork the parent's threads do not exist and cannot be joined; their bookkeeping is left behind.
  if (crew->generation == processGeneration())
    delete crew;
}

WorkerPool::Crew &WorkerPool::crew() {
  Crew *found = current.load(std::memory_order_acquire);
  if (found->generation == processGeneration())
    return *found;
  // First call in a child. The parent's crew is left behind: joining threads that do not exist would hang.
  auto fresh = std::make_unique<Crew>(threadCount - 1);
  if (!fresh->grow(scratchBytes.load()))
    throw std::bad_alloc();
  if (current.compare_exchange_strong(found, fresh.get()))
    return *fresh.release();
  return *found; // another thread of the child was faster
}

Status WorkerPool::reserveScratch(size_t bytes) {
  std::lock_guard lock(scratchMutex);
  if (bytes <= scratchBytes.load())
    return Status::ok();
  // In powers of two, so that growing in small steps keeps few old pieces alive.
  size_t rounded = std::bit_ceil(bytes);
  if (!crew().grow(rounded))
    return Status::error(ErrorCode::kOutOfMemory, "no memory for " + std::to_string(rounded) +
                                                      " bytes of scratch on each of " + std::to_string(threadCount) +
                                                      " CPU workers");
  scratchBytes.store(rounded);
  return Status::ok();
}

void WorkerPool::run(KernelFunction kernel, const uint64_t *slots, const int32_t (&grid)[3], void *callerScratch) {
  DefaultFloatMode mode;
  int64_t programs = int64_t{grid[0]} * grid[1] * grid[2];
  if (programs <= 0)
    return;
  Crew &crew = this->crew();
  Job *job = programs > 1 && !crew.workers.empty() ? crew.claim() : nullptr;
  Job alone;
  Job &target = job ? *job : alone;
  target.kernel = kernel;
  target.slots = slots;
  std::copy(std::begin(grid), std::end(grid), target.grid);
  target.programs = programs;
  // Sixteen at most, so that the last chunk does not keep one thread busy while the others wait.
  target.chunk = std::clamp<int64_t>(programs / (int64_t{threadCount} * 64), 1, 16);
  target.next.store(0, std::memory_order_relaxed);
  if (job) {
    job->phase.store(Job::kOpen);
    crew.wake();
  }
  target.work(callerScratch);
  if (!job)
    return;
  job->phase.store(Job::kClosing);
  for (uint32_t visitors; (visitors = job->visitors.load()) != 0;)
    job->visitors.wait(visitors);
  job->phase.store(Job::kFree);
}

} // namespace nsa::cpu
