// Host memory that only a test of the CPU device can lay out: pages that end in one that must not be touched, and
// address space without memory behind it.
// Ownership: each owns its mapping. Thread-safety: one thread.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <sys/mman.h>
#include <unistd.h>

namespace nsa::test {

// Content that ends where a page begins that must not be touched; another one is in front of the content's pages.
class GuardedMemory {
public:
  explicit GuardedMemory(std::span<const std::byte> content) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t used = (content.size() + page - 1) / page * page;
    mapped = used + 2 * page;
    base = static_cast<std::byte *>(mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base, page, PROT_NONE);
    mprotect(base + page + used, page, PROT_NONE);
    begin = base + page + used - content.size();
    if (!content.empty())
      std::memcpy(begin, content.data(), content.size());
  }
  ~GuardedMemory() { munmap(base, mapped); }
  GuardedMemory(const GuardedMemory &) = delete;
  GuardedMemory &operator=(const GuardedMemory &) = delete;

  std::byte *data() const { return begin; }

private:
  std::byte *base = nullptr;
  std::byte *begin = nullptr;
  size_t mapped = 0;
};

// Pages come with the first write.
class SparseMemory {
public:
  explicit SparseMemory(size_t bytes) : bytes(bytes) {
    void *pointer = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory = pointer == MAP_FAILED ? nullptr : static_cast<std::byte *>(pointer);
  }
  ~SparseMemory() {
    if (memory)
      munmap(memory, bytes);
  }
  SparseMemory(const SparseMemory &) = delete;
  SparseMemory &operator=(const SparseMemory &) = delete;

  std::byte *data() const { return memory; } // nullptr: no address space

private:
  size_t bytes;
  std::byte *memory;
};

} // namespace nsa::test
