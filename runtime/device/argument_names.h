// What the names in a manifest stand for: the arguments of a kernel, and the sizes in the formulas of its grid. The
// names of operators' kernels are lists of this library (runtime/model/kernel_arguments.def); a program of one's own
// declares its names (runtime/program/program_interface.h).
// Thread-safety: immutable.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/base/manifest.h"
#include "runtime/base/status.h"

#include <optional>
#include <string_view>

namespace nsa {

// A size in the formula of a grid: a size of the call, one of its scalars, or the number of multiprocessors.
struct GridSource {
  int64_t GridSizes::*size = nullptr;
  int scalar = -1; // its place in KernelCall::scalars
  bool isMultiprocessors = false;
};

class ArgumentNames {
public:
  virtual ~ArgumentNames() = default;

  struct View {
    int index = 0; // in KernelCall::views
    DType dtype = DType::kI32;
  };
  // Returns an error if a manifest names an operator or a program that has other names.
  virtual Status check(const Manifest &manifest) const = 0;
  // Returns the place of a view's tensor in a call. The error says what the parameter breaks: a tensor without a place,
  // another number of coordinates or another element type.
  virtual Result<View> view(const Manifest &manifest, const ManifestParam &param) const = 0;
  // Returns the place of the tensor that a tensor map describes.
  virtual Result<View> mappedView(const Manifest &manifest, const ManifestParam &param) const = 0;
  // Returns the place of a number in KernelCall::scalars.
  virtual Result<int> scalar(const Manifest &manifest, const ManifestParam &param) const = 0;
  // Returns nullopt for a name that is no size of a grid.
  virtual std::optional<GridSource> gridSource(std::string_view name) const = 0;
  // Returns the number of a word that the formula of a grid compares with, such as the operator's own name for `op`.
  virtual std::optional<int64_t> word(const Manifest &manifest, std::string_view name) const = 0;
  // Returns the place of the view that has the status word of a launch, or -1 where there is none.
  virtual int statusView() const = 0;

protected:
  // The error of a parameter, which names it, what it is and the rule.
  static Status wrongParam(const ManifestParam &param, std::string rule,
                           std::string hint = "nsa check says where a template of your own breaks the rule; a stored "
                                              "kernel was made by another version of the templates");
};

// The names of operators' kernels.
const ArgumentNames &operatorArguments();

} // namespace nsa
