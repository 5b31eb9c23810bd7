#include "runtime/engine/program/program_check.h"

#include "runtime/base/device_status.h"
#include "runtime/base/half.h"
#include "runtime/base/text.h"
#include "runtime/program/interpreter/interpreter.h"
#include "runtime/program/parsed_program.h"
#include "runtime/program/shipped_libraries.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>

namespace nsa {

namespace {

using interpreter::Cell;
using interpreter::TileCall;
using interpreter::TileFindings;
using interpreter::TileTensor;

// The interpreter takes some hundred bytes for each element of its tiles, and for each element of a tensor these: a
// value, a bound of its error, and who has stored to it.
constexpr int64_t kMostElements = int64_t{1} << 26;

double loadElement(DType dtype, const std::byte *at) {
  uint16_t half = 0;
  uint32_t word = 0;
  if (dtypeBytes(dtype) == sizeof half)
    std::memcpy(&half, at, sizeof half);
  else
    std::memcpy(&word, at, sizeof word);
  if (dtype == DType::kBf16 || dtype == DType::kF16)
    return static_cast<double>(dtype == DType::kBf16 ? bf16ToFloat(half) : fp16ToFloat(half));
  return dtype == DType::kI32 ? static_cast<double>(static_cast<int32_t>(word))
                              : static_cast<double>(std::bit_cast<float>(word));
}

void storeElement(DType dtype, std::byte *at, double value) {
  if (dtypeBytes(dtype) == sizeof(uint16_t)) {
    const auto number = static_cast<float>(value);
    const uint16_t half = dtype == DType::kBf16 ? floatToBf16(number) : floatToFp16(number);
    std::memcpy(at, &half, sizeof half);
    return;
  }
  const uint32_t word = dtype == DType::kI32 ? static_cast<uint32_t>(static_cast<int32_t>(value))
                                             : std::bit_cast<uint32_t>(static_cast<float>(value));
  std::memcpy(at, &word, sizeof word);
}

// The bytes of a tensor, from its first element to its last one.
class TensorBytes {
public:
  explicit TensorBytes(const Tensor &tensor) : tensor(tensor) {
    for (int axis = 0; axis < tensor.rank; ++axis) {
      // An input may have strides of 0, so extents alone do not bound the product.
      if (__builtin_mul_overflow(count, tensor.shape[static_cast<size_t>(axis)], &count))
        count = std::numeric_limits<int64_t>::max();
      last += std::max<int64_t>(tensor.shape[static_cast<size_t>(axis)] - 1, 0) * tensor.strideOf(axis);
    }
  }

  int64_t elements() const { return count; }
  // The elements of the tensor, or from its first element to its last one if these are more.
  int64_t spread() const { return std::max(count, last + 1); }
  Status download(Device &device) {
    if (count == 0)
      return Status::ok();
    bytes.resize(static_cast<size_t>(last + 1) * size);
    return device.download(bytes.data(), tensor.data, bytes.size());
  }
  // Writes elements alone: what lies between them may be written by others meanwhile.
  Status upload(Device &device) const {
    const bool hasRows = tensor.rank > 0 && tensor.strideOf(tensor.rank - 1) == 1;
    const auto run = static_cast<size_t>(hasRows ? tensor.shape[static_cast<size_t>(tensor.rank - 1)] : 1);
    for (int64_t i = 0; i < count; i += static_cast<int64_t>(run)) {
      const size_t at = offset(i) * size;
      NSA_RETURN_IF_ERROR(device.upload(static_cast<std::byte *>(tensor.data) + at, bytes.data() + at, run * size));
    }
    return Status::ok();
  }
  // Of the element with a number in row-major order.
  std::byte *at(int64_t element) { return bytes.data() + offset(element) * size; }

private:
  size_t offset(int64_t element) const {
    int64_t result = 0;
    for (int axis = tensor.rank; axis-- > 0;) {
      const int64_t extent = tensor.shape[static_cast<size_t>(axis)];
      result += element % extent * tensor.strideOf(axis);
      element /= extent;
    }
    return static_cast<size_t>(result);
  }

  const Tensor &tensor;
  const size_t size = static_cast<size_t>(dtypeBytes(tensor.dtype));
  int64_t count = 1, last = 0;
  std::vector<std::byte> bytes;
};

std::optional<std::string> libraryText(const CheckedProgram &program, const std::string &name) {
  if (const auto own = program.source.libraries.find(name); own != program.source.libraries.end())
    return own->second;
  const std::string file = name + ".tile";
  if (!program.templateDir.empty()) {
    std::ifstream stream(program.templateDir + "/tile/library/" + file, std::ios::binary);
    return stream ? std::optional(std::string(std::istreambuf_iterator<char>(stream), {})) : std::nullopt;
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
  std::vector<TensorBytes> memory;
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
    TensorBytes &bytes = memory[number];
    NSA_RETURN_IF_ERROR(bytes.download(device));
    TileTensor &tensor = call.tensors[std::string(named.name)];
    tensor.element = interpreter::elementOf(named.tensor.dtype);
    tensor.shape.assign(named.tensor.shape.begin(), named.tensor.shape.begin() + named.tensor.rank);
    for (int64_t i = 0; i < bytes.elements(); ++i)
      tensor.cells.push_back({loadElement(named.tensor.dtype, bytes.at(i)), 0});
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
      storeElement(tensors[i].tensor.dtype, memory[i].at(static_cast<int64_t>(k)), cells[k].value);
    NSA_RETURN_IF_ERROR(memory[i].upload(device));
  }
  return errorOf(program, findings);
}

} // namespace nsa
