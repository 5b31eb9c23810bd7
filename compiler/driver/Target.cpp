#include "compiler/driver/Target.h"

#include "runtime/model/targets.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

namespace nsa {

namespace {

constexpr int64_t kKiB = 1024;

constexpr std::array kKnown = [] {
  std::array<Target, std::size(kTargets)> known;
  std::ranges::transform(kTargets, known.begin(), [](const TargetDef &def) {
    return Target{def.name, def.major > 0, def.sharedKiBPerBlock * kKiB, def.threadsPerBlock};
  });
  return known;
}();

// MLIR's name of a tensor's element type.
std::string_view elementType(DType dtype) {
  switch (dtype) {
  case DType::kBf16:
    return "bf16";
  case DType::kF16:
    return "f16";
  case DType::kF32:
    return "f32";
  case DType::kI32:
    return "i32";
  case DType::kFp8E4M3:
    return "f8E4M3FN";
  case DType::kFp8E5M2:
    return "f8E5M2";
  }
  assert(false && "a dtype of no known kind");
  return "";
}

} // namespace

Result<const Target *> Target::find(std::string_view name) {
  if (const auto found = std::ranges::find(kKnown, name, &Target::name); found != kKnown.end())
    return &*found;
  return Status::invalid("target", "'" + std::string(name) + "'", "must be one of " + targetNames());
}

bool Target::matches(std::string_view word) const { return word == name || (word == "gpu" && isGpu); }

bool Target::knowsWord(std::string_view word) {
  return std::ranges::any_of(kKnown, [&](const Target &target) { return target.matches(word); });
}

ResourceLimits Target::limits() const {
  // What a multiprocessor of the largest architectures holds. ptxas leaves out what another one does not.
  constexpr int64_t kResidentBlocks = 32, kResidentThreads = 2048;
  return isGpu ? ResourceLimits{threadsPerBlock, sharedBytesPerBlock, kResidentBlocks, kResidentThreads}
               : ResourceLimits{};
}

// A multiprocessor has four parts with 16384 registers each, and a warp runs on one of them. A warp gets registers in
// units of 8 for each of its 32 threads, so a part has 64 units. All targets are so, and ptxas counts so.
static constexpr int64_t kParts = 4, kUnitsOfPart = 64, kUnit = 8, kMostRegisters = 255, kWarpSize = 32;

int64_t Target::residentBlocks(int64_t registers, int64_t threads, int64_t sharedBytes) const {
  // The system takes 1 KiB of each block's shared memory, and leaves one block all but 1 KiB of the multiprocessor's.
  constexpr int64_t kSystemBytes = 1024;
  const int64_t warps = (threads + kWarpSize - 1) / kWarpSize;
  const int64_t units = std::max<int64_t>((registers + kUnit - 1) / kUnit, 1);
  const int64_t byRegisters = kParts * (kUnitsOfPart / units) / warps;
  const int64_t byMemory = (sharedBytesPerBlock + kSystemBytes) / (sharedBytes + kSystemBytes);
  return std::max<int64_t>(std::min(byRegisters, byMemory), 1);
}

int64_t Target::registersFor(int64_t blocks, int64_t threads) {
  const int64_t warps = blocks * ((threads + kWarpSize - 1) / kWarpSize);
  const int64_t warpsOfPart = (warps + kParts - 1) / kParts;
  return std::min(kUnitsOfPart / warpsOfPart * kUnit, kMostRegisters);
}

Values Target::values(std::string_view op, DType dtype, int lanes) const {
  // mma.sync takes 16-bit operands in steps of 16 along the inner dimension. fp32 is not rounded to TF32
  // (docs/specification.md, section 2), so it runs as multiply-adds in steps of 8. The dot products of the CPU take any
  // size and read fp32.
  int64_t dotStep = !isGpu ? 1 : dtype == DType::kF32 ? 8 : 16;
  Values values;
  values.set("op", std::string(op));
  values.set("cpu", isGpu ? 0 : 1);
  values.set("gpu", isGpu ? 1 : 0);
  values.set("element", std::string(elementType(dtype)));
  values.set("dtype_bytes", dtypeBytes(dtype));
  values.set("dot_step", dotStep);
  values.set("shared_limit", sharedBytesPerBlock);
  values.set("vector_lanes", isGpu ? 1 : lanes);
  return values;
}

} // namespace nsa
