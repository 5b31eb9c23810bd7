// Runs tile programs written in a test: text -> image -> memory, with guard pages around scratch and tensors.
// Thread-safety: none needed, one test uses one object.
#pragma once

#include "compiler/cpu/Cpu.h"
#include "tests/unit/cpu/mapped_image.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace nsa::test {

// Every `${name}` in the text gets its value.
std::string fill(std::string text, const std::map<std::string, std::string> &values);

// The feature levels that this processor can run.
std::vector<std::string> runnableFeatures();

// The slot block of a launch, in the order of the program's arguments.
class Slots {
public:
  Slots &view(const void *data, std::vector<int64_t> strides) {
    words.push_back(reinterpret_cast<uint64_t>(data));
    for (int64_t stride : strides)
      words.push_back(uint64_t(stride));
    words.push_back(0);
    return *this;
  }
  Slots &pagedView(const void *data, std::vector<int64_t> strides, const int32_t *table, int64_t tableStride) {
    view(data, std::move(strides));
    words.push_back(reinterpret_cast<uint64_t>(table));
    words.push_back(uint64_t(tableStride));
    return *this;
  }
  Slots &i32(int32_t value) {
    words.push_back(uint32_t(value));
    return *this;
  }
  Slots &f32(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    words.push_back(bits);
    return *this;
  }
  Slots &append(const Slots &more) {
    words.insert(words.end(), more.words.begin(), more.words.end());
    return *this;
  }
  const uint64_t *data() const { return words.data(); }

private:
  std::vector<uint64_t> words;
};

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
