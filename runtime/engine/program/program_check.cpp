#include "runtime/engine/program/program_check.h"

#include "runtime/base/device_status.h"
#include "runtime/base/text.h"
#include "runtime/engine/program/host_copy.h"
#include "runtime/program/interpreter/interpreter.h"
#include "runtime/program/parsed_program.h"
#include "runtime/program/shipped_libraries.h"

#include <algorithm>

namespace nsa {

namespace {

using interpreter::Cell;
using interpreter::TileCall;
using interpreter::TileFindings;
using interpreter::TileTensor;

// The interpreter takes some hundred bytes for each element of its tiles, and for each element of a tensor these: a
// value, a bound of its error, and who has stored to it.
constexpr int64_t kMostElements = int64_t{1} << 26;

std::optional<std::string> libraryText(const CheckedProgram &program, const std::string &name) {
  if (const auto own = program.source.libraries.find(name); own != program.source.libraries.end())
    return own->second;
  const std::string file = name + ".tile";
  if (!program.templateDir.empty()) {
    std::string trouble;
    return language::readSource(program.templateDir + "/tile/library/" + file, trouble);
  }
  for (const ShippedLibrary &library : shippedLibraries())
    if (library.file == file)
      return std::string(library.text);
  return std::nullopt;
}

Status errorOf(const CheckedProgram &program, const TileFindings &findings) {
  if (findings.faults.empty()) {
    if (findings.reports.empty())
      return Status::ok();
    const auto &[code, place] = findings.reports.front();
    return program.interface.statusOf({static_cast<int32_t>(code), static_cast<int32_t>(place)});
  }
  std::string text;
  for (const interpreter::Fault &fault : findings.faults)
    text += fault.message;
  return Status(ErrorInfo{.code = ErrorCode::kInvalidArgument,
                          .field = "program",
                          .value = program.source.file,
                          .rule = "does what it must not do",
                          .message = text,
                          .hint = "the call was checked with " + formatValues(program.manifest.config)});
}

} // namespace

Status checkProgramCall(const CheckedProgram &program, Device &device, std::span<const NamedTensor> tensors,
                        std::span<const NamedScalar> scalars) {
  KernelCall bound;
  NSA_RETURN_IF_ERROR(prepareProgramCall(program.interface, tensors, scalars, bound));
  TileCall call;
  call.isGpu = device.isGpu();
  call.values = program.interface.fixed();
  for (const auto &[name, value] : program.manifest.config)
    if (!parseInteger(value, call.choices[name]))
      return Status::error(ErrorCode::kInternal, "the manifest of a program has a choice that is no integer: " + name);
  for (size_t i = 0; i < program.interface.scalars().size(); ++i)
    call.scalars[program.interface.scalars()[i].name] = program.interface.scalars()[i].valueOf(bound.scalars[i]);
  // The word in which a kernel reports, which no caller binds.
  call.tensors[std::string(ProgramInterface::kStatusTensor)] = {
      interpreter::Element::kI32, {kDeviceStatusWords}, std::vector<Cell>(kDeviceStatusWords)};
  std::vector<HostCopy> memory;
  int64_t left = kMostElements;
  for (const NamedTensor &named : tensors)
    if ((left -= std::min(memory.emplace_back(named.tensor).spread(), kMostElements + 1)) < 0)
      return program.interface.named(
          Status::invalid("tensors", "more than " + std::to_string(kMostElements) + " elements",
                          "a call that is checked has at most so many in all its tensors, with what lies between "
                          "their elements",
                          "check a call of smaller sizes"));
  for (size_t number = 0; number < tensors.size(); ++number) {
    const NamedTensor &named = tensors[number];
    HostCopy &copy = memory[number];
    NSA_RETURN_IF_ERROR(copy.download(device));
    TileTensor &tensor = call.tensors[std::string(named.name)];
    tensor.element = interpreter::elementOf(named.tensor.dtype);
    tensor.shape.assign(named.tensor.shape.begin(), named.tensor.shape.begin() + named.tensor.rank);
    for (int64_t i = 0; i < copy.elements(); ++i)
      tensor.cells.push_back({copy.load(i), 0});
  }
  NSA_ASSIGN_OR_RETURN(const std::shared_ptr<ParsedProgram> parsed,
                       ParsedProgram::parse(program.source.file, program.source.text,
                                            [&](const std::string &name) { return libraryText(program, name); }));
  NSA_ASSIGN_OR_RETURN(const TileFindings findings, interpreter::interpret(parsed->trees(), call));
  if (!findings.faults.empty())
    return errorOf(program, findings);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto place = static_cast<size_t>(program.interface.findTensor(tensors[i].name));
    if (!program.interface.tensors()[place].isStored)
      continue;
    const std::vector<Cell> &cells = call.tensors.at(std::string(tensors[i].name)).cells;
    for (size_t k = 0; k < cells.size(); ++k)
      memory[i].store(static_cast<int64_t>(k), cells[k].value);
    NSA_RETURN_IF_ERROR(memory[i].upload(device));
  }
  return errorOf(program, findings);
}

} // namespace nsa
