// A value that a process shares with the children it starts. Thread-safety: the value's.
#pragma once

#include <new>
#include <sys/mman.h>

namespace nsa::test {

template <typename T> class SharedPage {
public:
  SharedPage() : value(new (mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) T{}) {}
  ~SharedPage() { munmap(value, sizeof(T)); }
  SharedPage(const SharedPage &) = delete;
  SharedPage &operator=(const SharedPage &) = delete;
  T *operator->() const { return value; }
  T &operator*() const { return *value; }

private:
  T *value;
};

} // namespace nsa::test
