// The architectures for which the compiler makes code (runtime/model/targets.h), and what templates ask of them.
// Thread-safety: Target has only constants and pure functions.
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
  int64_t sharedBytesPerBlock; // TargetDef::sharedKiBPerBlock
  int32_t threadsPerBlock;

  // Returns the target with a name such as "sm_90a". The error for an unknown target name lists the known names.
  // The returned Target exists as long as the library is loaded.
  static Result<const Target *> find(std::string_view name);
  // Returns whether this target is one of the targets that `word` stands for. `word` is a word of a template's
  // `targets` line: "cpu", "gpu" or the name of an architecture. A word that the compiler does not know stands for no
  // target.
  bool matches(std::string_view word) const;
  // Returns whether `word`, a word of a template's `targets` line, stands for at least one target.
  static bool knowsWord(std::string_view word);

  // Returns the hardware limits for one thread block. For a CPU, the limits are INT64_MAX.
  ResourceLimits limits() const;
  // Returns how many blocks of a kernel a multiprocessor holds at once, as far as its registers (of each thread) and
  // its shared memory decide it: at least 1.
  int64_t residentBlocks(int64_t registers, int64_t threads, int64_t sharedBytes) const;
  // Returns the most registers of a thread with which a multiprocessor holds so many blocks.
  static int64_t registersFor(int64_t blocks, int64_t threads);
  // Returns the values that driverValues() (TemplateHeader.h) names, for one operator (or program) and dtype. `lanes`
  // is the number of f32 lanes in a vector of the CPU.
  Values values(std::string_view op, DType dtype, int lanes) const;
};

} // namespace nsa
