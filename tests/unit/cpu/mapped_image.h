// A CPU image in executable memory, and buffers whose neighbours are guard pages: a kernel that reads or
// writes out of bounds stops the test instead of changing its result.
// Each object owns its pages. Thread-safety: none needed, one test uses one object.
#pragma once

#include "compiler/cpu/CpuImage.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cstddef>
#include <cstring>

namespace nsa::test {

inline size_t roundToPages(size_t bytes) {
  const size_t page = size_t(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

class MappedImage {
public:
  using Entry = void (*)(const uint64_t *slots, const int32_t *programId, void *scratch);

  explicit MappedImage(const cpu::CpuImage &image) : MappedImage(image.bytes, image.entryOffset) {}
  MappedImage(const std::vector<uint8_t> &bytes, int64_t entryOffset)
      : size(roundToPages(bytes.size())), entryOffset(entryOffset) {
    base = static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    assert(base != MAP_FAILED);
    std::memcpy(base, bytes.data(), bytes.size());
    [[maybe_unused]] int failed = mprotect(base, size, PROT_READ | PROT_EXEC);
    assert(!failed);
  }
  ~MappedImage() { munmap(base, size); }
  MappedImage(const MappedImage &) = delete;
  MappedImage &operator=(const MappedImage &) = delete;

  Entry entry() const { return reinterpret_cast<Entry>(base + entryOffset); }
  template <typename Function> Function *as() const { return reinterpret_cast<Function *>(base + entryOffset); }

private:
  char *base = nullptr;
  size_t size;
  int64_t entryOffset;
};

// `bytes` of memory between two pages that may not be touched. kEnd puts the buffer's end at the upper guard (catches
// overruns by one byte), kStart its start at the lower one.
class GuardedBuffer {
public:
  enum class Against { kStart, kEnd };

  // Fills the buffer with NaN bits, so that what was not written is seen.
  explicit GuardedBuffer(size_t bytes, Against against = Against::kEnd)
      : page(roundToPages(1)), total(roundToPages(bytes) + 2 * page), bytes(bytes) {
    base = static_cast<char *>(mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    assert(base != MAP_FAILED);
    mprotect(base, page, PROT_NONE);
    mprotect(base + total - page, page, PROT_NONE);
    start = against == Against::kStart ? base + page : base + total - page - bytes;
    std::memset(start, 0xff, bytes);
  }
  ~GuardedBuffer() { munmap(base, total); }
  GuardedBuffer(const GuardedBuffer &) = delete;
  GuardedBuffer &operator=(const GuardedBuffer &) = delete;

  template <typename T> T *as() { return reinterpret_cast<T *>(start); }
  size_t size() const { return bytes; }

private:
  size_t page;
  size_t total;
  size_t bytes;
  char *base = nullptr;
  char *start = nullptr;
};

} // namespace nsa::test
