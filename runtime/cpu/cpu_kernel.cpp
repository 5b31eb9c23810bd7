#include "runtime/cpu/cpu_kernel.h"

#include <charconv>

namespace nsa::cpu {

Result<std::unique_ptr<Kernel>> CpuKernel::load(WorkerPool &pool, const Manifest &manifest,
                                                std::span<const std::byte> image) {
  const std::string &entry = manifest.entry;
  uint64_t offset = 0;
  auto [end, error] = std::from_chars(entry.data() + 1, entry.data() + entry.size(), offset);
  if (!entry.starts_with('+') || error != std::errc() || end != entry.data() + entry.size())
    return Status::invalid("entry", entry, "must be '+' and a byte offset into the image (CPU kernels)");
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<CpuImage> mapped, CpuImage::map(image, offset));
  auto scratchBytes = static_cast<size_t>(manifest.scratchBytes);
  NSA_RETURN_IF_ERROR(pool.reserveScratch(scratchBytes));
  return std::unique_ptr<Kernel>(new CpuKernel(pool, std::move(mapped), scratchBytes));
}

Status CpuKernel::launch(const uint64_t *slots, const int32_t (&grid)[3], void *workspace, void *stream) const {
  pool.run(image->entry(), slots, grid, workspace);
  return Status::ok();
}

} // namespace nsa::cpu
