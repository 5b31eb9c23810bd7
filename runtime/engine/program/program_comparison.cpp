#include "runtime/engine/program/program_comparison.h"

#include "runtime/engine/graph/element_errors.h"

#include <algorithm>
#include <utility>

namespace nsa {

namespace {

// Calls `visit` with the offset of each element, in elements from the first one.
template <typename Visit> void forEachElement(const Tensor &tensor, int axis, int64_t offset, const Visit &visit) {
  if (axis == tensor.rank) {
    visit(offset);
    return;
  }
  for (int64_t i = 0; i < tensor.shape[static_cast<size_t>(axis)]; ++i)
    forEachElement(tensor, axis + 1, offset + i * tensor.strideOf(axis), visit);
}

} // namespace

Status ProgramComparison::wait() const {
  const std::unique_ptr<LaunchClock> clock = device.makeClock();
  NSA_RETURN_IF_ERROR(clock->mark(stream));
  return clock->spans().status(); // waits
}

Result<std::vector<ProgramComparison::Output>> ProgramComparison::readOutputs(const ProgramInterface &interface) const {
  NSA_RETURN_IF_ERROR(wait()); // for what the host has enqueued
  std::vector<Output> outputs;
  for (const NamedTensor &named : tensors) {
    if (!interface.tensors()[static_cast<size_t>(interface.findTensor(named.name))].isStored)
      continue;
    const Tensor &tensor = named.tensor;
    const std::span shape(tensor.shape.data(), static_cast<size_t>(tensor.rank));
    const bool isEmpty = std::ranges::find(shape, 0) != shape.end();
    int64_t begin = 0, end = 1;
    for (int axis = 0; axis < tensor.rank; ++axis) {
      const int64_t last = (shape[static_cast<size_t>(axis)] - 1) * tensor.strideOf(axis);
      (last < 0 ? begin : end) += last;
    }
    Output output{&named, isEmpty ? 0 : begin, {}};
    if (!isEmpty) {
      output.before.resize(static_cast<size_t>((end - begin) * dtypeBytes(tensor.dtype)));
      NSA_RETURN_IF_ERROR(device.download(
          output.before.data(), static_cast<const std::byte *>(tensor.data) + begin * dtypeBytes(tensor.dtype),
          output.before.size()));
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Result<ProgramComparison::Results> ProgramComparison::resultsOf(const Side &side,
                                                                const std::vector<Output> &outputs) const {
  KernelCall call = side.call;
  std::vector<DeviceBuffer> copies;
  for (const Output &output : outputs) {
    NSA_ASSIGN_OR_RETURN(DeviceBuffer copy, DeviceBuffer::allocate(device, output.before.size()));
    if (output.before.empty()) { // nothing is stored to it
      copies.push_back(std::move(copy));
      continue;
    }
    NSA_RETURN_IF_ERROR(device.upload(copy.data(), output.before.data(), output.before.size()));
    // The kernel sees the copy with the strides of the tensor.
    Tensor tensor = output.named->tensor;
    tensor.data = static_cast<std::byte *>(copy.data()) - output.begin * dtypeBytes(tensor.dtype);
    const auto place = static_cast<size_t>(side.interface.findTensor(output.named->name));
    call.views[place] = viewOf(side.interface.tensors()[place], tensor);
    copies.push_back(std::move(copy));
  }
  NSA_ASSIGN_OR_RETURN(const DeviceBuffer scratch, DeviceBuffer::allocate(device, side.kernel.workspaceBytes()));
  NSA_RETURN_IF_ERROR(side.kernel.launch(call, statusWord, scratch.data(), stream));
  NSA_RETURN_IF_ERROR(wait());
  Results results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::vector<std::byte> &bytes = results.emplace_back(outputs[i].before.size());
    if (!bytes.empty())
      NSA_RETURN_IF_ERROR(device.download(bytes.data(), copies[i].data(), bytes.size()));
  }
  return results;
}

Result<std::vector<ComparedPart>> ProgramComparison::run(const Side &own, const Side &reference) const {
  NSA_ASSIGN_OR_RETURN(const std::vector<Output> outputs, readOutputs(own.interface));
  NSA_ASSIGN_OR_RETURN(const Results actual, resultsOf(own, outputs));
  NSA_ASSIGN_OR_RETURN(const Results expected, resultsOf(reference, outputs));
  std::vector<ComparedPart> parts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor &tensor = outputs[i].named->tensor;
    ElementErrors errors;
    forEachElement(tensor, 0, -outputs[i].begin, [&](int64_t at) {
      errors.add(elementAt(actual[i].data(), tensor.dtype, at), elementAt(expected[i].data(), tensor.dtype, at));
    });
    ComparedPart part = comparedPart(own.kernel, &reference.kernel, errors);
    part.part = outputs[i].named->name;
    parts.push_back(std::move(part));
  }
  return parts;
}

} // namespace nsa
