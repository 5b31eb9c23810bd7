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

// The kernels' folder beside this program, in a build and in a bundle.
std::string microKernelFolder();
// The text that NVRTC compiles. Fails if the folder lacks the kernel's file.
Result<std::string> microText(const MicroSource &source, const std::string &folder);

} // namespace nsa::bench
