// A CPU kernel's code in memory: one position-independent image that is mapped read-execute. The image's pages are
// never writable and executable at one time, so the image can also be mapped where a security policy forbids such
// pages.
// Ownership: the pages live as long as the CpuImage.
// Thread-safety: immutable.
#pragma once

#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace nsa::cpu {

// Runs one program of the grid. `scratch` belongs to the worker thread and is aligned to 64 bytes.
using KernelFunction = void (*)(const uint64_t *slots, const int32_t programId[3], void *scratch);

class CpuImage {
public:
  // `entryOffset` is the offset in bytes of the kernel's first instruction in the image.
  static Result<std::unique_ptr<CpuImage>> map(std::span<const std::byte> image, uint64_t entryOffset);
  ~CpuImage();
  CpuImage(const CpuImage &) = delete;
  CpuImage &operator=(const CpuImage &) = delete;

  KernelFunction entry() const { return function; }

private:
  CpuImage() = default;
  void *pages = nullptr;
  size_t pageBytes = 0;
  KernelFunction function = nullptr;
};

} // namespace nsa::cpu
