#include "runtime/base/cpu_features.h"

namespace nsa {

std::string_view hostCpuFeatures() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4"))
    return "x86-64-v4";
  if (__builtin_cpu_supports("x86-64-v3"))
    return "x86-64-v3";
#endif
  return "";
}

Result<int> cpuVectorLanes(std::string_view features) {
  if (features == "x86-64-v4")
    return 16;
  if (features == "x86-64-v3")
    return 8;
  return Status::invalid("cpu_features", "'" + std::string(features) + "'", "must be x86-64-v3 or x86-64-v4",
                         "the CPU device needs AVX2 and FMA");
}

} // namespace nsa
