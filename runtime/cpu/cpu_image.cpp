#include "runtime/cpu/cpu_image.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/mman.h>

namespace nsa::cpu {

namespace {

Status systemError(const char *call) {
  int number = errno;
  return Status::error(number == ENOMEM ? ErrorCode::kOutOfMemory : ErrorCode::kDeviceError,
                       std::string("mapping a CPU kernel failed: ") + call + ": " + strerror(number),
                       "the process must be allowed to map memory read-execute");
}

} // namespace

Result<std::unique_ptr<CpuImage>> CpuImage::map(std::span<const std::byte> image, uint64_t entryOffset) {
  if (entryOffset >= image.size())
    return Status::invalid("entry", "+" + std::to_string(entryOffset),
                           "must lie within the image of " + std::to_string(image.size()) + " bytes");
  std::unique_ptr<CpuImage> result(new CpuImage);
  void *pages = mmap(nullptr, image.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    return systemError("mmap");
  result->pages = pages;
  result->pageBytes = image.size();
  memcpy(pages, image.data(), image.size());
  if (mprotect(pages, image.size(), PROT_READ | PROT_EXEC) != 0)
    return systemError("mprotect");
  result->function = reinterpret_cast<KernelFunction>(static_cast<char *>(pages) + entryOffset);
  return result;
}

CpuImage::~CpuImage() {
  if (pages)
    munmap(pages, pageBytes);
}

} // namespace nsa::cpu
