// Makes the source texts of the kernels that nsa_bench_micro times. The text of a kernel consists of definitions of
// constants and of a file of bench/micro/kernels, in which the included files of the device library are inserted. NVRTC
// compiles the text of each kernel as a separate program.
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
