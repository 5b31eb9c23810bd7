// The kernels that nsa_bench_micro times: files of bench/micro/kernels, with constants in front of them and the device
// library inserted. NVRTC compiles each of these kernels as a program of its own.
// Thread-safety: micro_source.h has only pure functions.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <utility>
#include <vector>

namespace nsa::bench {

struct MicroSource {
  std::string file; // "wgmma_rate.cu"
  std::vector<std::pair<std::string, int>> constants;

  // The kernel's name in messages, by which it is also found: "wgmma_rate.cu kColumns=64".
  std::string name() const;
  bool operator==(const MicroSource &) const = default;
};

// Returns the path of the folder with the kernels' source files, relative to where this program is installed, both in a
// build tree and in a bundle.
std::string microKernelFolder();
// The text that NVRTC compiles. Fails if the folder does not contain the kernel's source file.
Result<std::string> microText(const MicroSource &source, const std::string &folder);

} // namespace nsa::bench
