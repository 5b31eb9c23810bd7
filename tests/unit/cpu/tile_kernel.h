// Runs tile programs written in a test: text -> image -> memory, with guard pages around scratch and tensors.
// Thread-safety: none needed, one test uses one object.
#pragma once

#include "compiler/cpu/Cpu.h"
#include "tests/harness/kernel_slots.h"
#include "tests/unit/cpu/mapped_image.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace nsa::test {

// Every `${name}` in the text gets its value.
std::string fill(std::string text, const std::map<std::string, std::string> &values);

// The feature levels that this processor can run.
std::vector<std::string> runnableFeatures();

class TileKernel {
public:
  // Fails the running test when the program does not compile.
  TileKernel(const std::string &text, const std::string &features);
  explicit TileKernel(cpu::CpuKernel compiled);

  // Twice, with scratch against either guard page: for programs that write the same whenever they run.
  void run(const Slots &slots, int32_t x = 0, int32_t y = 0, int32_t z = 0) const;
  void runOnce(const Slots &slots, GuardedBuffer::Against against, int32_t x = 0, int32_t y = 0, int32_t z = 0) const;
  const cpu::CpuKernel &kernel() const { return compiled; }

private:
  cpu::CpuKernel compiled;
  std::unique_ptr<MappedImage> image;
};

// The error of a program that must not compile.
std::string compileError(const std::string &text, const std::string &features = "x86-64-v3");

} // namespace nsa::test
