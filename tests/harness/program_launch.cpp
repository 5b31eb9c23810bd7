#include "tests/harness/program_launch.h"

#include "runtime/base/half.h"
#include "runtime/include/nsa/nsa.h"
#include "tests/harness/session.h"

#include <cstring>

namespace nsa::test {

namespace {

using tile::Element;
using tile::TileTensor;
using ProgramHandle = std::unique_ptr<nsa_program, tools::Destroyer<nsa_program_destroy>>;

nsa_dtype dtypeOf(Element element) {
  return element == Element::kBf16  ? NSA_BF16
         : element == Element::kF16 ? NSA_FP16
         : element == Element::kI32 ? NSA_INT32
                                    : NSA_FP32;
}

size_t bytesOf(Element element) { return tile::isStorage(element) ? 2 : 4; }

// The bytes of a tensor in which `gap` elements of ones lie behind each row: NaN, or -1.
class Laid {
public:
  Laid(const TileTensor &tensor, int64_t gap)
      : element(tensor.element), row(static_cast<size_t>(tensor.shape.back())),
        stride(row + static_cast<size_t>(tensor.shape.size() > 1 ? gap : 0)) {
    const size_t rows = row == 0 ? 0 : tensor.cells.size() / row;
    bytes.resize(rows * stride * bytesOf(element), std::byte{0xff});
    for (size_t i = 0; i < tensor.cells.size(); ++i)
      put(i, tensor.cells[i].value);
  }

  double get(size_t index) const {
    switch (element) {
    case Element::kBf16:
      return static_cast<double>(bf16ToFloat(at<uint16_t>(index)));
    case Element::kF16:
      return static_cast<double>(fp16ToFloat(at<uint16_t>(index)));
    case Element::kI32:
      return static_cast<double>(at<int32_t>(index));
    default:
      return static_cast<double>(at<float>(index));
    }
  }
  void put(size_t index, double value) {
    switch (element) {
    case Element::kBf16:
      return set(index, floatToBf16(static_cast<float>(value)));
    case Element::kF16:
      return set(index, floatToFp16(static_cast<float>(value)));
    case Element::kI32:
      return set(index, static_cast<int32_t>(value));
    default:
      return set(index, static_cast<float>(value));
    }
  }

  nsa_tensor apiTensor(const TileTensor &tensor, void *data) const {
    nsa_tensor result = NSA_INIT(nsa_tensor);
    result.data = data;
    result.dtype = dtypeOf(element);
    result.rank = static_cast<int32_t>(tensor.shape.size());
    int64_t step = 1;
    for (size_t axis = tensor.shape.size(); axis-- > 0;) {
      result.shape[axis] = tensor.shape[axis];
      result.strides[axis] = step;
      step *= axis + 1 == tensor.shape.size() ? static_cast<int64_t>(stride) : tensor.shape[axis];
    }
    return result;
  }

  std::vector<std::byte> bytes;

private:
  template <typename T> T at(size_t index) const {
    T value;
    std::memcpy(&value, bytes.data() + (index / row * stride + index % row) * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T> void set(size_t index, T value) {
    std::memcpy(bytes.data() + (index / row * stride + index % row) * sizeof(T), &value, sizeof(T));
  }

  Element element;
  size_t row, stride; // in elements
};

} // namespace

Result<std::unique_ptr<ProgramDevice>> ProgramDevice::open() {
  std::unique_ptr<ProgramDevice> result(new ProgramDevice);
  NSA_ASSIGN_OR_RETURN(result->device, tools::Accelerator::open(kTestDevice));
  tools::EngineSettings settings;
  settings.device = kTestDevice;
  NSA_ASSIGN_OR_RETURN(result->engine, tools::createEngine(tools::withNothingStored(settings)));
  return result;
}

Result<std::map<std::string, TileTensor>> ProgramDevice::run(const std::string &text, const tile::TileCall &call,
                                                             const std::set<std::string> &outputs, int64_t gap) {
  nsa_program_source source = NSA_INIT(nsa_program_source);
  source.text = text.c_str();
  std::vector<nsa_program_value> values;
  for (const auto &[name, value] : call.values)
    values.push_back({name.c_str(), value.c_str()});
  // This call's integer scalars are also the greatest values with which the program is made.
  std::map<std::string, std::string> greatest;
  std::vector<nsa_program_scalar> scalars;
  for (const auto &[name, value] : call.scalars) {
    scalars.push_back({name.c_str(), value});
    if (value == static_cast<double>(static_cast<int64_t>(value)) && text.find(name + ": f32") == std::string::npos)
      greatest.emplace(name, std::to_string(static_cast<int64_t>(value)));
  }
  for (const auto &[name, value] : greatest)
    values.push_back({name.c_str(), value.c_str()});
  nsa_program *made = nullptr;
  NSA_RETURN_IF_ERROR(tools::toStatus(
      nsa_program_create(engine.get(), &source, values.data(), values.size(), device->stream(), &made, nullptr)));
  const ProgramHandle program(made);
  std::map<std::string, tools::Buffer> buffers;
  std::map<std::string, Laid> laid;
  std::map<std::string, nsa_tensor> bound;
  std::vector<nsa_program_tensor> named;
  for (const auto &[name, tensor] : call.tensors) {
    const Laid &own = laid.emplace(name, Laid(tensor, gap)).first->second;
    NSA_ASSIGN_OR_RETURN(tools::Buffer buffer, device->allocate(own.bytes.size()));
    NSA_RETURN_IF_ERROR(device->upload(buffer.data(), own.bytes.data(), own.bytes.size()));
    bound.emplace(name, own.apiTensor(tensor, buffer.data()));
    buffers.emplace(name, std::move(buffer));
    named.push_back({name.c_str(), &bound.at(name)});
  }
  size_t bytes = 0;
  NSA_RETURN_IF_ERROR(tools::toStatus(nsa_program_workspace_size(program.get(), &bytes, nullptr)));
  tools::Buffer workspace;
  if (bytes != 0) {
    NSA_ASSIGN_OR_RETURN(workspace, device->allocate(bytes));
  }
  NSA_RETURN_IF_ERROR(
      tools::toStatus(nsa_program_run(program.get(), named.data(), named.size(), scalars.data(), scalars.size(),
                                      workspace.data(), bytes, device->stream(), nullptr)));
  NSA_RETURN_IF_ERROR(tools::toStatus(nsa_program_status(program.get(), device->stream(), nullptr)));
  std::map<std::string, TileTensor> results;
  for (const auto &[name, buffer] : buffers) {
    NSA_RETURN_IF_ERROR(device->checkGuards(buffer, name));
    TileTensor tensor = call.tensors.at(name);
    Laid &own = laid.at(name);
    Laid read = own;
    NSA_RETURN_IF_ERROR(device->download(read.bytes.data(), buffer.data(), read.bytes.size()));
    const bool isOutput = outputs.contains(name);
    for (size_t i = 0; i < tensor.cells.size() && isOutput; ++i) {
      tensor.cells[i] = {read.get(i), 0};
      own.put(i, read.get(i));
    }
    if (read.bytes != own.bytes)
      return Status::invalid("tensor " + name, "changed",
                             isOutput ? "nothing between its rows may be written"
                                      : "the program stores to other tensors only");
    if (isOutput)
      results.emplace(name, std::move(tensor));
  }
  return results;
}

} // namespace nsa::test
