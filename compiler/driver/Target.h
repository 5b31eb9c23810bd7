// What the compiler knows of each machine it makes code for. The only place that tells architectures apart.
// Thread-safety: constants and pure functions.
#pragma once

#include "compiler/render/Candidates.h"
#include "compiler/render/Values.h"
#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string_view>

namespace nsa {

struct Target {
  std::string_view name; // "cpu", "sm_90a"
  bool isGpu;
  // Of one thread block, with the opt-in above 48 KiB (CUDA C++ Programming Guide, "Compute Capabilities").
  int64_t sharedBytesPerBlock;
  int32_t threadsPerBlock;

  // An unknown name is an error that lists the known ones.
  static Result<const Target *> find(std::string_view name);
  // Whether a template's `targets` word ("cpu", "gpu", an architecture) means this target. Unknown words mean none.
  bool matches(std::string_view word) const;
  static bool knowsWord(std::string_view word);

  ResourceLimits limits() const;
  // The values of driverValues() (TemplateHeader.h) for one problem. `lanes` is the f32 lanes of the CPU's vectors.
  Values values(Operator op, DType dtype, int lanes) const;
};

} // namespace nsa
