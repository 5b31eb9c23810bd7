// A kernel with its manifest understood once: which argument goes into which slot, and the grid formulas with the
// compiled-in values filled in. After that a launch looks nothing up by name.
// Thread-safety: immutable.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/engine/device.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace nsa {

inline constexpr size_t kMaxSlots = 128; // of one kernel; attention with tensor maps uses about 90

class LoadedKernel {
public:
  // Fails on an argument or grid name that this runtime does not know, so that a launch cannot.
  static Result<std::shared_ptr<const LoadedKernel>> load(Device &device, std::string content, Manifest manifest,
                                                          std::span<const std::byte> binary);

  // Evaluates the grid, fills the arguments on the stack and launches. Allocates nothing.
  Status launch(const KernelCall &call, const void *statusWord, void *workspace, void *stream) const;
  using Slots = std::array<uint64_t, kMaxSlots>;
  // Fails when a view's pages are not as the kernel was compiled for. Maps that cannot be made are 0, and so are the
  // slots behind the last one up to the next multiple of a map's.
  Status fillArguments(const KernelCall &call, const void *statusWord, Slots &slots) const;
  // Unsupported when a size exceeds what the device launches; names axis and formula.
  Status grid(const GridSizes &sizes, int32_t (&result)[3]) const;

  size_t workspaceBytes() const { return kernel->workspaceBytes(); }
  const Manifest &manifest() const { return parsed; }
  const std::string &content() const { return contentId; }
  // The compiler's numbers and those the device knows of the loaded code.
  std::map<std::string, std::string> evidence() const;

private:
  struct Argument {
    ManifestParam::Kind kind = ManifestParam::Kind::kI32;
    int index = 0; // of the View, also a map's, or of the Scalar
    int rank = 0;
    bool isPaged = false;
    const ManifestParam *map = nullptr; // of `parsed`
  };
  // A name in a grid formula: a compiled-in constant, or one of the sizes.
  struct GridName {
    int64_t GridSizes::*size = nullptr;
    int64_t constant = 0;
  };

  LoadedKernel() = default;
  Status bindArguments();
  Result<Argument> bindView(const ManifestParam &param) const;
  Result<Argument> bindMap(const ManifestParam &param) const;
  Status bindGrid(int64_t multiprocessors);
  Status fillMap(const KernelCall &call, const Argument &argument, uint64_t *slots) const;

  std::string contentId;
  Manifest parsed;
  std::unique_ptr<Kernel> kernel;
  DType element = DType::kBf16; // of what is the problem's own
  std::vector<Argument> arguments;
  std::vector<GridName> gridNames[3];
  int64_t gridLimits[3] = {};
};

} // namespace nsa
