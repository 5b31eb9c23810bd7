// The kernels that nsa_bench_micro times: files of bench/micro/kernels with constants written before them and the
// device library written into them, each a program of its own for NVRTC. Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <utility>
#include <vector>

namespace nsa::bench {

struct MicroSource {
  std::string file; // "wgmma_rate.cu"
  std::vector<std::pair<std::string, int>> constants;

  // "wgmma_rate.cu kColumns=64": names the kernel in messages and finds it again.
  std::string name() const;
  bool operator==(const MicroSource &) const = default;
};

// The kernels' folder beside this program, in a build and in a bundle.
std::string microKernelFolder();
// What NVRTC is given. Fails where the folder lacks the file.
Result<std::string> microText(const MicroSource &source, const std::string &folder);

} // namespace nsa::bench
