// Runs the programs of a grid on all cores. Workers are parked between runs. The calling thread runs programs too. The
// threads take the programs in small chunks, because with a causal mask the programs take different times. The pool
// uses neither TBB nor OpenMP, because the host process may have another version of them.
// Thread-safety: `run` may be called by many threads at once; it allocates nothing and takes no lock. In the child of a
// fork, the first call of `run` makes new worker threads.
#pragma once

#include "runtime/cpu/cpu_image.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace nsa::cpu {

class WorkerPool {
public:
  // `threads` is the number of threads that run programs, including the calling thread; it is at least 1.
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  // Gives each worker at least `bytes` of scratch, aligned to 64 bytes. reserveScratch must be called before a run that
  // needs the scratch. Calls of `run` that are in progress keep using the scratch memory with which they began.
  Status reserveScratch(size_t bytes);

  // Calls kernel(slots, {x, y, z}, scratch) once for each program of the grid, and returns when all programs are done.
  // `callerScratch` is the scratch of the calling thread.
  void run(KernelFunction kernel, const uint64_t *slots, const int32_t (&grid)[3], void *callerScratch);

  int threads() const { return threadCount; }

private:
  struct Crew;

  Crew &crew();

  int threadCount;
  std::mutex scratchMutex;
  std::atomic<size_t> scratchBytes{0};
  std::atomic<Crew *> current;
};

} // namespace nsa::cpu
