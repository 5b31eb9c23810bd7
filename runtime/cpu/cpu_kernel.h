// A loaded CPU kernel: its image, which is mapped into memory, and the pool of threads that runs the programs of its
// grid.
// Ownership: a kernel owns its image and borrows the pool.
// Thread-safety: immutable; many threads may launch it at once.
#pragma once

#include "runtime/cpu/cpu_image.h"
#include "runtime/cpu/worker_pool.h"
#include "runtime/device/device.h"

#include <cassert>

namespace nsa::cpu {

class CpuKernel final : public Kernel {
public:
  static Result<std::unique_ptr<Kernel>> load(WorkerPool &pool, const Manifest &manifest,
                                              std::span<const std::byte> image);

  Status launch(const uint64_t *slots, const int32_t (&grid)[3], void *workspace, void *stream) const override;
  // Returns the size in bytes of the scratch memory for the thread that calls `launch`: this thread runs programs of
  // the grid too. Each thread that launches a CPU kernel needs its own scratch memory, because many threads may run one
  // plan.
  size_t workspaceBytes() const override { return scratchBytes; }
  Status writeMap(const TensorMapShape &shape, uint64_t *slots) const override {
    assert(false && "a kernel of the CPU has no tensor maps");
    return Status::ok();
  }

private:
  CpuKernel(WorkerPool &pool, std::unique_ptr<CpuImage> image, size_t scratchBytes)
      : pool(pool), image(std::move(image)), scratchBytes(scratchBytes) {}

  WorkerPool &pool;
  std::unique_ptr<CpuImage> image;
  size_t scratchBytes;
};

} // namespace nsa::cpu
