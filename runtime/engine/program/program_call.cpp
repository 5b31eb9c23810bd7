#include "runtime/engine/program/program_call.h"

#include "runtime/engine/call/tensor_checks.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace nsa {

namespace {

std::string dimensionsHint(const ProgramTensor &tensor) { return "its dimensions are " + tensor.dimensionsText(); }

// A number as a person writes it: 1.5 and not 1.500000.
std::string numberText(double value) {
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), value).ptr};
}

// The error of a name that the program does not declare. `declared` are its tensors or its scalars.
template <typename Declared>
Status unknown(const char *what, std::string_view name, const std::vector<Declared> &declared) {
  std::vector<std::string_view> known;
  for (const Declared &each : declared)
    known.push_back(each.name);
  return Status::invalid(what, std::string(name), std::string("the program declares no such ") + what,
                         nameHint(name, known));
}

class Binder {
public:
  Binder(const ProgramInterface &interface, KernelCall &call) : interface(interface), call(call) {}

  Status run(std::span<const NamedTensor> tensors, std::span<const NamedScalar> scalars) {
    NSA_RETURN_IF_ERROR(bind(tensors));
    NSA_RETURN_IF_ERROR(set(scalars));
    NSA_RETURN_IF_ERROR(fit());
    fill();
    return Status::ok();
  }

private:
  Status bind(std::span<const NamedTensor> tensors) {
    for (const NamedTensor &named : tensors) {
      const int place = interface.findTensor(named.name);
      if (place < 0)
        return unknown("tensor", named.name, interface.tensors());
      if (bound[static_cast<size_t>(place)])
        return brokenTensor(named.name, "", "bound twice", "each name may be bound once");
      NSA_RETURN_IF_ERROR(check(interface.tensors()[static_cast<size_t>(place)], named.tensor));
      bound[static_cast<size_t>(place)] = &named.tensor;
    }
    for (size_t i = 0; i < interface.tensors().size(); ++i)
      if (const ProgramTensor &tensor = interface.tensors()[i]; !bound[i] && !tensor.isOptional)
        return brokenTensor(tensor.name, "", "absent", "must be bound, because it is not optional",
                            dimensionsHint(tensor));
    return Status::ok();
  }

  Status set(std::span<const NamedScalar> scalars) {
    for (const NamedScalar &named : scalars) {
      const int place = interface.findScalar(named.name);
      if (place < 0)
        return unknown("scalar", named.name, interface.scalars());
      if (known.has(place))
        return Status::invalid(std::string(named.name), "given twice", "each scalar may be given once");
      const ProgramScalar &scalar = interface.scalars()[static_cast<size_t>(place)];
      const bool isWhole = named.value == std::trunc(named.value) && std::abs(named.value) <= INT32_MAX;
      if (scalar.type == ScalarType::kI32 && !isWhole)
        return Status::invalid(std::string(named.name), numberText(named.value),
                               "must be an integer of 32 bits, because the scalar is i32");
      known.set(place, scalar.slotOf(named.value));
    }
    return Status::ok();
  }

  // The extents say scalars, and scalars say extents.
  Status fit() {
    for (size_t i = 0; i < interface.tensors().size(); ++i)
      if (bound[i])
        for (size_t axis = 0; axis < interface.tensors()[i].dimensions.size(); ++axis)
          infer(interface.tensors()[i].dimensions[axis], bound[i]->shape[axis]);
    for (size_t i = 0; i < interface.scalars().size(); ++i)
      if (!known.has(static_cast<int>(i)))
        return Status::invalid(interface.scalars()[i].name, "absent",
                               "must be given, because no dimension of a bound tensor is '" +
                                   interface.scalars()[i].name + "'");
    for (size_t i = 0; i < interface.tensors().size(); ++i)
      if (bound[i])
        NSA_RETURN_IF_ERROR(checkExtents(interface.tensors()[i], *bound[i]));
    return Status::ok();
  }

  void fill() {
    call.scalars = known.values;
    for (size_t i = 0; i < interface.tensors().size(); ++i)
      if (bound[i])
        call.views[i] = viewOf(interface.tensors()[i], *bound[i]);
  }

  static Status check(const ProgramTensor &declared, const Tensor &tensor) {
    const auto rank = static_cast<int>(declared.dimensions.size());
    if (tensor.rank != rank)
      return brokenTensor(declared.name, ".rank", std::to_string(tensor.rank), "must be " + std::to_string(rank),
                          dimensionsHint(declared));
    NSA_RETURN_IF_ERROR(checkTensor(declared.name, tensor, declared.dtype, rank));
    if (rank > declared.coordinates)
      NSA_RETURN_IF_ERROR(checkContiguous(declared.name, tensor, rank - 1));
    return declared.isStored ? checkDisjoint(declared.name, tensor) : Status::ok();
  }

  void infer(const ProgramTensor::Dimension &dimension, int64_t extent) {
    const int scalar = dimension.extent ? dimension.extent->scalar() : -1;
    if (scalar >= 0 && !known.has(scalar))
      known.set(scalar, static_cast<uint32_t>(extent));
  }

  Status checkExtents(const ProgramTensor &declared, const Tensor &tensor) const {
    for (size_t axis = 0; axis < declared.dimensions.size(); ++axis) {
      const ProgramTensor::Dimension &dimension = declared.dimensions[axis];
      if (!dimension.extent)
        continue;
      NSA_ASSIGN_OR_RETURN(const int64_t extent, dimension.extent->evaluate(known));
      if (extent != tensor.shape[axis])
        return checkExtent(declared.name, tensor, static_cast<int>(axis), extent,
                           "'" + dimension.label + ": " + dimension.extent->text() + "'");
    }
    return Status::ok();
  }

  const ProgramInterface &interface;
  KernelCall &call;
  std::array<const Tensor *, ProgramInterface::kMostTensors> bound = {};
  KnownScalars known;
};

} // namespace

ViewSlots viewOf(const ProgramTensor &declared, const Tensor &tensor) {
  std::array<int64_t, kMaxCoordinates> strides = {};
  for (int axis = 0; axis < declared.coordinates; ++axis)
    strides[static_cast<size_t>(axis)] = tensor.strideOf(axis);
  return ViewSlots::make(tensor.data, tensor.dtype, strides);
}

Status prepareProgramCall(const ProgramInterface &interface, std::span<const NamedTensor> tensors,
                          std::span<const NamedScalar> scalars, KernelCall &call) {
  return interface.named(Binder(interface, call).run(tensors, scalars));
}

Status prepareReferenceCall(const ProgramInterface &reference, std::span<const NamedTensor> tensors,
                            std::span<const NamedScalar> scalars, KernelCall &call) {
  const Status status = prepareProgramCall(reference, tensors, scalars, call);
  if (status.isOk())
    return status;
  ErrorInfo info = status.error();
  info.message = "the reference takes other tensors than the program: " + info.sentence();
  return Status(std::move(info));
}

} // namespace nsa
