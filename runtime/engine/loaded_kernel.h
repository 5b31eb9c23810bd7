// A kernel whose manifest was read once: which argument goes into which slot, and the formulas of the grid with the
// compiled-in values filled in. A launch of a loaded kernel looks up nothing by name.
// Thread-safety: immutable.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/engine/device.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace nsa {

inline constexpr size_t kMaxSlots = 128; // slots of one kernel; attention with tensor maps uses about 90

class LoadedKernel {
public:
  // Loads the code and binds all names. `load` fails on the name of an argument or of a grid size that this runtime
  // does not know, so that no launch can fail by an unknown name.
  static Result<std::shared_ptr<const LoadedKernel>> load(Device &device, std::string content, Manifest manifest,
                                                          std::span<const std::byte> binary);

  // Evaluates the grid, fills the arguments on the stack and launches the kernel. Allocates nothing.
  Status launch(const KernelCall &call, const void *statusWord, void *workspace, void *stream) const;
  using Slots = std::array<uint64_t, kMaxSlots>;
  // Fills the slots of all arguments. fillArguments fails when a view has pages and the kernel was compiled without
  // pages, or the other way round. A tensor map that cannot be made is all 0, and so are the slots behind the last
  // argument, up to a multiple of a map's slots.
  Status fillArguments(const KernelCall &call, const void *statusWord, Slots &slots) const;
  // Computes the grid. A grid that exceeds what the device can launch is the error kUnsupported, which names axis and
  // formula.
  Status grid(const GridSizes &sizes, int32_t (&result)[3]) const;

  size_t workspaceBytes() const { return kernel->workspaceBytes(); }
  const Manifest &manifest() const { return parsed; }
  const std::string &content() const { return contentId; }
  // Returns the numbers of the manifest's evidence and the numbers that the device knows of the loaded code.
  std::map<std::string, std::string> evidence() const;

private:
  struct Argument {
    ManifestParam::Kind kind = ManifestParam::Kind::kI32;
    int index = 0; // the number of the View (also a map's) or of the Scalar
    int rank = 0;
    bool isPaged = false;
    const ManifestParam *map = nullptr; // points into `parsed`
  };
  // A name in the formula of a grid: a compiled-in constant, or one of the sizes of GridSizes.
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
  DType element = DType::kBf16; // the type of ElementType::kOwn
  std::vector<Argument> arguments;
  std::vector<GridName> gridNames[3];
  int64_t gridLimits[3] = {};
};

} // namespace nsa
