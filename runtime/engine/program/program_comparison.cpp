#include "runtime/engine/program/program_comparison.h"

#include "runtime/engine/graph/element_errors.h"

#include <utility>

namespace nsa {

Status ProgramComparison::wait() const {
  const std::unique_ptr<LaunchClock> clock = device.makeClock();
  NSA_RETURN_IF_ERROR(clock->mark(stream));
  return clock->spans().status(); // waits
}

Result<ProgramComparison::Outputs> ProgramComparison::readOutputs(const ProgramInterface &interface) const {
  NSA_RETURN_IF_ERROR(wait()); // for what the host has enqueued
  Outputs outputs;
  for (const NamedTensor &named : tensors) {
    if (!interface.tensors()[static_cast<size_t>(interface.findTensor(named.name))].isStored)
      continue;
    Output &output = outputs.emplace_back(Output{named.name, HostCopy(named.tensor)});
    NSA_RETURN_IF_ERROR(output.copy.download(device));
  }
  return outputs;
}

Result<ProgramComparison::Outputs> ProgramComparison::resultsOf(const Side &side, Outputs outputs) const {
  KernelCall call = side.call;
  std::vector<DeviceBuffer> buffers;
  for (const Output &output : outputs) {
    NSA_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::allocate(device, output.copy.bytes()));
    NSA_RETURN_IF_ERROR(output.copy.upload(device, buffer.data()));
    // The kernel sees the copy with the strides of the tensor.
    Tensor tensor = output.copy.tensor();
    tensor.data = buffer.data();
    const auto place = static_cast<size_t>(side.interface.findTensor(output.name));
    call.views[place] = viewOf(side.interface.tensors()[place], tensor);
    buffers.push_back(std::move(buffer));
  }
  NSA_ASSIGN_OR_RETURN(const DeviceBuffer scratch, DeviceBuffer::allocate(device, side.kernel.workspaceBytes()));
  NSA_RETURN_IF_ERROR(side.kernel.launch(call, statusWord, scratch.data(), stream));
  NSA_RETURN_IF_ERROR(wait());
  for (size_t i = 0; i < outputs.size(); ++i)
    NSA_RETURN_IF_ERROR(outputs[i].copy.download(device, buffers[i].data()));
  return outputs;
}

Result<std::vector<ComparedPart>> ProgramComparison::run(const Side &own, const Side &reference) const {
  NSA_ASSIGN_OR_RETURN(const Outputs before, readOutputs(own.interface));
  NSA_ASSIGN_OR_RETURN(const Outputs actual, resultsOf(own, before));
  NSA_ASSIGN_OR_RETURN(const Outputs expected, resultsOf(reference, before));
  std::vector<ComparedPart> parts;
  for (size_t i = 0; i < actual.size(); ++i) {
    ElementErrors errors;
    for (int64_t element = 0; element < actual[i].copy.elements(); ++element)
      errors.add(actual[i].copy.load(element), expected[i].copy.load(element));
    ComparedPart part = comparedPart(own.kernel, &reference.kernel, errors);
    part.part = actual[i].name;
    parts.push_back(std::move(part));
  }
  return parts;
}

} // namespace nsa
