// A loaded kernel with its parsed manifest. A LoadedKernel knows which argument goes into which slot, and has the
// formulas of the grid with the compiled-in values filled in. A launch looks up no name, because `load` has resolved
// all names.
// Thread-safety: immutable.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/device/argument_names.h"
#include "runtime/device/device.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace nsa {

inline constexpr size_t kMaxSlots = 208; // slots of one kernel; decode_step with pages and a perceptron uses 204

class LoadedKernel {
public:
  // Loads the code, and resolves the names of all arguments and grid sizes in the manifest. `load` fails if `names`
  // lacks the name of an argument or of a grid size, so that a launch cannot fail for this reason.
  static Result<std::shared_ptr<const LoadedKernel>> load(Device &device, std::string content, SharedManifest manifest,
                                                          std::span<const std::byte> binary,
                                                          const ArgumentNames &names = operatorArguments());

  // Returns the error of `load`, or of `grid` for these sizes, that the manifest alone tells. `check` loads no code.
  static Status check(const Device &device, SharedManifest manifest, const LaunchSizes &sizes,
                      const ArgumentNames &names);

  // Evaluates the grid, fills the arguments on the stack and launches the kernel. Allocates nothing.
  Status launch(const KernelCall &call, const void *statusWord, void *workspace, void *stream) const;
  using Slots = std::array<uint64_t, kMaxSlots>;
  // Fills the slots of all arguments. fillArguments fails when a view has pages and the kernel was compiled without
  // pages, or the other way round. If a view cannot have a tensor map, all 16 slots of the tensor map are set to 0. The
  // unused slots after the last argument, up to the next multiple of 16 slots (ManifestParam::kMapSlots), are set to 0.
  Status fillArguments(const KernelCall &call, const void *statusWord, Slots &slots) const;
  // Computes the grid. If the device cannot launch a grid of this size, `grid` returns the error kUnsupported, whose
  // message names the axis and the formula.
  Status grid(const LaunchSizes &sizes, int32_t (&result)[3]) const;

  size_t workspaceBytes() const { return kernel->workspaceBytes(); }
  const Manifest &manifest() const { return *parsed; }
  const std::string &content() const { return contentId; }
  // Returns an error if the kernel reads or writes the elements of a view as another type.
  Status checkType(View view, DType dtype) const;
  // Returns the evidence of the manifest together with what the device reports about the loaded code
  // (Kernel::evidence), such as the number of registers.
  std::map<std::string, std::string> evidence() const;

private:
  struct Argument {
    ManifestParam::Kind kind = ManifestParam::Kind::kI32;
    int index = 0; // the place of the view (also a map's) or of the number in a KernelCall
    int rank = 0;
    bool isPaged = false;
    DType dtype = DType::kI32;          // of a view or a map
    const ManifestParam *map = nullptr; // points into `parsed`
  };
  // What a name in the formula of a grid stands for: a size of a launch, or a constant.
  struct GridName {
    GridSource source{};
    int64_t constant = 0;

    int64_t value(const LaunchSizes &sizes) const {
      return source.size ? sizes.grid.*source.size : source.scalar >= 0 ? sizes.scalar(source.scalar) : constant;
    }
  };

  LoadedKernel() = default;
  Status bind(const Device &device, SharedManifest manifest, const ArgumentNames &names);
  Status bindArguments(const ArgumentNames &names);
  Result<Argument> bindArgument(const ManifestParam &param, const ArgumentNames &names) const;
  Status bindGrid(int64_t multiprocessors, const ArgumentNames &names);
  Status fillMap(const KernelCall &call, const Argument &argument, uint64_t *slots) const;

  std::string contentId;
  SharedManifest parsed;
  std::unique_ptr<Kernel> kernel;
  std::vector<Argument> arguments;
  std::vector<GridName> gridNames[3];
  int64_t gridLimits[3] = {};
  int statusView = -1;
};

} // namespace nsa
