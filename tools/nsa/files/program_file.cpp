#include "tools/nsa/files/program_file.h"

#include "runtime/json/nearest_name.h"

namespace nsa::tools {

namespace {

// A tensor with as many dimensions as the program declares.
Result<HostTensor> readTensor(const ProgramTensor &declared, const SafetensorsFile &file) {
  NSA_ASSIGN_OR_RETURN(HostTensor tensor, file.read(declared.name));
  if (tensor.shape.size() != declared.dimensions.size())
    return Status::invalid("tensor " + declared.name, shapeText(tensor.shape),
                           "must have the " + std::to_string(declared.dimensions.size()) + " dimensions " +
                               declared.dimensionsText());
  return tensor;
}

} // namespace

Result<ProgramInputs> readProgramFile(const ProgramSource &source, ProgramValues &values, const SafetensorsFile &file) {
  NSA_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramInterface> open,
                       ProgramInterface::make(source, values, ProgramInterface::Sizes::kOpen));
  ProgramInputs inputs;
  for (const ProgramTensor &declared : open->tensors()) {
    if (!declared.isRead() || (declared.isOptional && !file.contains(declared.name)))
      continue;
    NSA_ASSIGN_OR_RETURN(HostTensor tensor, readTensor(declared, file));
    for (size_t axis = 0; axis < tensor.shape.size(); ++axis)
      if (const std::optional<ProgramSize> &extent = declared.dimensions[axis].extent; extent && extent->scalar() >= 0)
        values.emplace(open->scalars()[static_cast<size_t>(extent->scalar())].name, std::to_string(tensor.shape[axis]));
    inputs.tensors.emplace(declared.name, std::move(tensor));
  }
  NSA_ASSIGN_OR_RETURN(inputs.interface, ProgramInterface::make(source, values));
  inputs.scalars = inputs.interface->given();
  return inputs;
}

std::vector<std::string> unusedTensors(const ProgramInputs &inputs, const SafetensorsFile &file) {
  std::vector<std::string_view> absent;
  for (const ProgramTensor &declared : inputs.interface->tensors())
    if (declared.isRead() && !inputs.tensors.contains(declared.name))
      absent.emplace_back(declared.name);
  std::vector<std::string> meant, others;
  for (const auto &[name, entry] : file.entries()) {
    if (inputs.tensors.contains(name))
      continue;
    if (const std::string_view nearest = nearestName(name, absent); !nearest.empty())
      meant.push_back(name + " (did you mean '" + std::string(nearest) + "'?)");
    else
      others.push_back(name);
  }
  meant.insert(meant.end(), others.begin(), others.end());
  return meant;
}

} // namespace nsa::tools
