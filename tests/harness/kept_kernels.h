// Where the compiler library that keeps its answers (kept_compiler.cpp) has its files, for tests of that library and of
// what happens while a kernel is compiled.
// Thread-safety: one thread, which has started no other that compiles.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace nsa::test {

// As long as an object lives, this process and those that it starts keep answers in `folder`; "": none, so that each
// kernel is compiled.
class KeptKernels {
public:
  explicit KeptKernels(const std::string &folder) {
    if (const char *before = std::getenv(kVariable))
      usual = before;
    setenv(kVariable, folder.c_str(), 1);
  }
  ~KeptKernels() {
    if (usual)
      setenv(kVariable, usual->c_str(), 1);
    else
      unsetenv(kVariable);
  }
  KeptKernels(const KeptKernels &) = delete;
  KeptKernels &operator=(const KeptKernels &) = delete;

private:
  static constexpr const char *kVariable = "NSA_TEST_KEPT_KERNELS";
  std::optional<std::string> usual;
};

} // namespace nsa::test
