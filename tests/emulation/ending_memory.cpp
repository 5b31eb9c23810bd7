#include "ending_memory.h"

#include <stdexcept>

#include <sys/mman.h>

namespace emulator {

namespace {

constexpr size_t kPage = 4096;

size_t wholePages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

} // namespace

unsigned char *endingMemory(size_t bytes) {
  const size_t whole = wholePages(bytes);
  void *region = mmap(nullptr, whole + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED)
    throw std::runtime_error("no memory");
  return static_cast<unsigned char *>(region) + kPage + whole - bytes;
}

void protectMemory(unsigned char *memory, size_t bytes, int protection) {
  const size_t whole = wholePages(bytes);
  mprotect(memory + bytes - whole, whole, protection);
}

} // namespace emulator
