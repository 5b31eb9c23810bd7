// What a program of one's own declares to its caller, for the values with which it is made: its tensors with their
// element types and extents, its scalars, and what it may report. The names of a program's kernels are found here, as
// the names of operators' kernels are found in the lists of this library. Ownership: an interface owns all its texts.
// Thread-safety: immutable.
#pragma once

#include "runtime/base/device_status.h"
#include "runtime/base/expression.h"
#include "runtime/base/kernel_arguments.h"
#include "runtime/device/argument_names.h"
#include "runtime/program/program_source.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

using ProgramValues = std::map<std::string, std::string>;

// The hint of an error about a name that a program does not declare: the nearest name that it declares, or all of them.
std::string nameHint(std::string_view name, std::span<const std::string_view> declared);

// The scalars of one call: a bit for each one that is known.
struct KnownScalars {
  ScalarSlots values = {};
  uint64_t known = 0;

  bool has(int index) const { return (known >> index & 1) != 0; }
  void set(int index, uint64_t value) {
    values[static_cast<size_t>(index)] = value;
    known |= uint64_t{1} << index;
  }
  int64_t integer(int index) const { return static_cast<int32_t>(values[static_cast<size_t>(index)]); }
};

// A size that is made of compiled-in values and of scalars, such as `ceildiv(tokens, 2) * heads`.
class ProgramSize {
public:
  static constexpr size_t kMostNames = 16;

  // Resolves each name of the formula by `constant`, or else by the place of a scalar.
  static Result<ProgramSize> make(Expression formula,
                                  const std::function<std::optional<int64_t>(const std::string &name)> &constant,
                                  const std::function<int(const std::string &name)> &scalar);

  // The scalar that alone is the size; -1: the size is more than one scalar.
  int scalar() const { return formula.isName() ? names.front().scalar : -1; }
  // Whether all scalars of the size are known.
  bool isKnown(const KnownScalars &scalars) const;
  // Allocates nothing, unless it fails.
  Result<int64_t> evaluate(const KnownScalars &scalars) const;
  const std::string &text() const { return formula.text(); }
  // Calls `visit` with the place of each scalar of the size.
  template <typename Visit> void forEachScalar(Visit visit) const {
    for (const Name &name : names)
      if (name.scalar >= 0)
        visit(name.scalar);
  }

private:
  struct Name {
    int scalar = -1;
    int64_t constant = 0;
  };
  Expression formula;
  std::vector<Name> names; // of the formula, in its order
};

struct ProgramTensor {
  struct Dimension {
    std::string label;
    std::optional<ProgramSize> extent; // nullopt: the program does not say
  };
  std::string name;
  std::vector<Dimension> dimensions; // the coordinates of a row, and behind them what a row is made of
  int coordinates = 0;               // the dimensions that have strides
  DType dtype = DType::kBf16;
  bool isOptional = false;
  bool isInout = false;
  bool isStored = false; // the program stores to it

  bool isRead() const { return !isStored || isInout; }
  // The extents of all dimensions. The error names the dimension of which the program does not say how large it is.
  Result<std::vector<int64_t>> shape(const KnownScalars &scalars) const;
  // "[row: rows, place: columns]"
  std::string dimensionsText() const;
};

struct ProgramScalar {
  std::string name;
  ScalarType type;
  // The value with which the program was made: an upper bound for the calls that the kernel is chosen for. nullopt:
  // none was given.
  std::optional<uint64_t> given{};

  // A value as the slot of a call has it, and the value of a slot. An i32 has a whole number.
  uint64_t slotOf(double value) const;
  double valueOf(uint64_t slot) const;
};

// A code that the program may report.
struct ProgramCode {
  std::string name;
  int32_t number = 0;
  std::string place;   // "softmax.tile:7"
  std::string meaning; // the comment of its declaration; "": it has none
};

class ProgramInterface final : public ArgumentNames {
public:
  // Whether the scalars of which sizes are made have to be among the values: a kernel is compiled without them.
  enum class Sizes { kGiven, kOpen };
  // `values` are texts of all `fixed` values, of `dtype` where the program has tensors of the call's element type, and
  // of scalars. The error names the value that is missing, unknown or of another kind.
  static Result<std::shared_ptr<const ProgramInterface>> make(const ProgramSource &source, const ProgramValues &values,
                                                              Sizes sizes = Sizes::kGiven);
  // The interface of the program's reference, for the same values. The error says what the reference needs or does
  // otherwise than the program.
  Result<std::shared_ptr<const ProgramInterface>> ofReference(const ProgramSource &reference) const;

  const std::string &name() const { return kernel; }
  const std::vector<ProgramTensor> &tensors() const { return tensorList; }
  const std::vector<ProgramScalar> &scalars() const { return scalarList; }
  const std::vector<ProgramCode> &codes() const { return codeList; }
  // The values that are compiled in: the declared ones, and dtype.
  const ProgramValues &fixed() const { return fixedValues; }
  // The element type of results, by which candidates are compared.
  DType dtype() const { return ioType; }
  // The scalars of which the sizes of the grid and of the tensors are made.
  bool isSize(int scalar) const { return (sizes >> scalar & 1) != 0; }
  // What a call does, as the program declares it: floating point operations, and bytes that have to go through memory.
  // nullopt: the program does not say.
  struct Work {
    std::optional<ProgramSize> flops, bytes;
  };
  const Work &work() const { return declaredWork; }
  // The scalars that were given.
  KnownScalars given() const;
  // Returns the place of a tensor, or -1.
  int findTensor(std::string_view name) const;
  int findScalar(std::string_view name) const;

  // Returns the error of a call with the program's name in front of its message; ok stays ok.
  Status named(const Status &status) const;
  // Returns ok if nothing was reported, or else a device error with the names of the program and of the code.
  Status statusOf(DeviceReport report) const;

  Status check(const Manifest &manifest) const override;
  Result<View> view(const Manifest &manifest, const ManifestParam &param) const override;
  Result<View> mappedView(const Manifest &manifest, const ManifestParam &param) const override;
  Result<int> scalar(const Manifest &manifest, const ManifestParam &param) const override;
  std::optional<GridSource> gridSource(std::string_view name) const override;
  std::optional<int64_t> word(const Manifest &manifest, std::string_view name) const override;
  int statusView() const override { return kStatusPlace; }

  // A kernel that reports takes the status word as a tensor of this name, which its caller does not bind.
  static constexpr std::string_view kStatusTensor = "status";
  static constexpr int kStatusPlace = kViews - 1;
  static constexpr int kMostTensors = kStatusPlace, kMostScalars = kScalars;

private:
  friend class InterfaceReader;
  ProgramInterface() = default;

  std::string kernel;
  std::string file; // of the kernel, as messages call it
  std::vector<ProgramTensor> tensorList;
  std::vector<ProgramScalar> scalarList;
  std::vector<ProgramCode> codeList;
  ProgramValues fixedValues;
  DType ioType = DType::kF32;
  Work declaredWork;
  uint64_t sizes = 0;
};

} // namespace nsa
