// Matrices of the device library's element types for tests: drawn numbers, and memory that ends at a page which must
// not be touched. Owned by one test.
#pragma once

#include "ptx_convert.cuh"
#include "view.cuh"

#include <cstdint>
#include <random>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace nsa::test {

// rows x stride elements, of which `columns` are drawn and the others are NaN. Past the last column of the last row
// come at most 15 bytes of NaN, so that the start is aligned, and then a page that faults.
template <typename T> class GuardedMatrix {
public:
  GuardedMatrix(int rows, int columns, int stride, unsigned seed) : rows(rows), columns(columns), stride(stride) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t used = (static_cast<size_t>(rows - 1) * stride + columns) * sizeof(T);
    size_t padded = (used + 15) / 16 * 16;
    bytes = (padded + page - 1) / page * page;
    base = static_cast<char *>(mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base + bytes, page, PROT_NONE);
    guard = page;
    elements = reinterpret_cast<T *>(base + bytes - padded);
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < padded / sizeof(T); ++i)
      elements[i] = to<T>(static_cast<int>(i % stride) < columns ? normal(generator) : NAN);
  }
  GuardedMatrix(const GuardedMatrix &) = delete;
  GuardedMatrix &operator=(const GuardedMatrix &) = delete;
  ~GuardedMatrix() { munmap(base, bytes + guard); }

  T &at(int row, int column) { return elements[static_cast<size_t>(row) * stride + column]; }
  float value(int row, int column) { return to_float(at(row, column)); }
  View<T, 1> view(bool aligned) { return {elements, {stride}, aligned ? 1u : 0u}; }

  const int rows, columns, stride;

private:
  char *base;
  size_t bytes, guard;
  T *elements;
};

} // namespace nsa::test
