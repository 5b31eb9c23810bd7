// The targets for which kernels are compiled: the CPU, and architectures of GPUs. Which of them runs code of which
// other. Thread-safety: constants and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nsa {

struct TargetDef {
  std::string_view name; // "cpu", "sm_90a"
  int major, minor;      // compute capability of a GPU; 0 and 0 for the CPU
  // The shared memory in KiB that one thread block can have after it opts in to more than 48 KiB (CUDA C++ Programming
  // Guide, "Compute Capabilities"). For the CPU the memory that a worker keeps hot: about half of a core's second-level
  // cache.
  int64_t sharedKiBPerBlock;
  int32_t threadsPerBlock;
};
// The GPUs stand in ascending order. The suffix `a` gives wgmma, TMA and their successors.
inline constexpr TargetDef kTargets[] = {
    {"cpu", 0, 0, 1024, 1},      {"sm_80", 8, 0, 163, 1024},    {"sm_86", 8, 6, 99, 1024},    {"sm_89", 8, 9, 99, 1024},
    {"sm_90a", 9, 0, 227, 1024}, {"sm_100a", 10, 0, 227, 1024}, {"sm_120a", 12, 0, 99, 1024},
};
std::string targetNames(std::string_view last = ", "); // "cpu, sm_80, ..."; `last` stands before the last name

// Returns how much older the architecture of GPU code is than that of a GPU which runs the code: 0 for the GPU's own
// target, and nullopt if the GPU does not run the code. Code runs on GPUs of the same major version and of an equal or
// a newer minor version. Code of a target with a suffix (sm_90a, sm_100f) runs on its own target only.
std::optional<int> ageOfCode(std::string_view codeTarget, std::string_view deviceTarget);

} // namespace nsa
