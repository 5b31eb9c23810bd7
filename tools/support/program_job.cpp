#include "tools/support/program_job.h"

#include "runtime/base/manifest.h"
#include "runtime/engine/program/program_call.h"
#include "tools/support/operator_job.h"
#include "tools/support/standard_normal.h"

#include <algorithm>
#include <random>

namespace nsa::tools {

namespace {

constexpr size_t kBufferAlignment = 256;

nlohmann::json parsed(char *text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  nsa_free(text);
  return json;
}

// Lists and masks of 0 alone reach little of a program, so a report says it.
bool isAllZero(const HostTensor &tensor) {
  return tensor.dtype == DType::kI32 && !tensor.bytes.empty() &&
         std::ranges::all_of(tensor.integers(), [](int32_t index) { return index == 0; });
}

std::vector<std::pair<std::string, double>> scalarsOf(const ProgramInputs &inputs) {
  std::vector<std::pair<std::string, double>> scalars;
  const std::vector<ProgramScalar> &declared = inputs.interface->scalars();
  for (size_t i = 0; i < declared.size(); ++i)
    if (inputs.scalars.has(static_cast<int>(i)))
      scalars.emplace_back(declared[i].name, declared[i].valueOf(inputs.scalars.values[i]));
  return scalars;
}

} // namespace

nlohmann::json describeProgram(const nsa_program *program) {
  char *json = nullptr;
  return toStatus(nsa_program_describe(program, &json, nullptr)).isOk() ? parsed(json) : nlohmann::json::object();
}

template <typename Use> auto ProgramRequest::pass(const Use &use) const {
  nsa_program_source source = NSA_INIT(nsa_program_source);
  (path.empty() ? source.text : source.path) = path.empty() ? text.c_str() : path.c_str();
  std::vector<nsa_program_value> list;
  for (const auto &[name, value] : values)
    list.push_back({name.c_str(), value.c_str()});
  return use(&source, list.data(), list.size());
}

Result<ProgramHandle> ProgramRequest::create(nsa_engine *engine, void *stream) const {
  return pass(
      [&](const nsa_program_source *source, const nsa_program_value *list, size_t count) -> Result<ProgramHandle> {
        nsa_program *program = nullptr;
        NSA_RETURN_IF_ERROR(toStatus(nsa_program_create(engine, source, list, count, stream, &program, nullptr)));
        return ProgramHandle(program);
      });
}

Result<nlohmann::json> ProgramRequest::explain(nsa_engine *engine) const {
  return pass(
      [&](const nsa_program_source *source, const nsa_program_value *list, size_t count) -> Result<nlohmann::json> {
        char *json = nullptr;
        NSA_RETURN_IF_ERROR(toStatus(nsa_program_explain(engine, source, list, count, &json, nullptr)));
        return parsed(json);
      });
}

Result<nlohmann::json> ProgramRequest::tune(nsa_engine *engine, double seconds) const {
  return pass(
      [&](const nsa_program_source *source, const nsa_program_value *list, size_t count) -> Result<nlohmann::json> {
        char *json = nullptr;
        NSA_RETURN_IF_ERROR(toStatus(nsa_program_tune(engine, source, list, count, seconds, &json, nullptr)));
        return parsed(json);
      });
}

std::string ProgramInputs::valuesText() const {
  std::string text = formatValues(interface->fixed());
  for (const ProgramScalar &scalar : interface->scalars())
    if (const int place = interface->findScalar(scalar.name); interface->isSize(place) && scalars.has(place))
      text.append(text.empty() ? "" : " ").append(scalar.name).append("=" + std::to_string(scalars.integer(place)));
  return text;
}

void ProgramInputs::setOpenScalars() {
  for (size_t i = 0; i < interface->scalars().size(); ++i)
    if (const int place = static_cast<int>(i); !scalars.has(place))
      scalars.set(place, interface->scalars()[i].slotOf(1));
}

Status ProgramInputs::check(const std::set<std::string> &outputs) const {
  std::vector<NamedTensor> bound;
  for (const ProgramTensor &declared : interface->tensors()) {
    const auto input = tensors.find(declared.name);
    if (input == tensors.end() && !outputs.contains(declared.name))
      continue;
    std::vector<int64_t> shape;
    if (input != tensors.end()) {
      shape = input->second.shape;
    } else {
      NSA_ASSIGN_OR_RETURN(shape, declared.shape(scalars));
    }
    alignas(kBufferAlignment) static std::byte anywhere[kBufferAlignment]; // nothing is read of it
    NamedTensor named{declared.name, {}};
    named.tensor.data = anywhere;
    named.tensor.dtype = input != tensors.end() ? input->second.dtype : declared.dtype;
    for (const int64_t extent : shape)
      named.tensor.addAxis(extent);
    NSA_RETURN_IF_ERROR(
        setRowMajorStrides(shape, std::span(named.tensor.strides).first(static_cast<size_t>(named.tensor.rank))));
    bound.push_back(named);
  }
  const std::vector<std::pair<std::string, double>> numbers = scalarsOf(*this);
  std::vector<NamedScalar> given;
  for (const auto &[name, value] : numbers)
    given.push_back({name, value});
  KernelCall call;
  return prepareProgramCall(*interface, bound, given, call);
}

std::string ProgramInputs::toString() const {
  const std::string values = valuesText();
  std::string text = interface->name() + (values.empty() ? "" : " ") + values;
  for (const auto &[name, tensor] : tensors)
    text.append(", ").append(name).append(" " + shapeText(tensor.shape)).append(isAllZero(tensor) ? " (all 0)" : "");
  return text;
}

Result<ProgramInputs> drawProgramInputs(std::shared_ptr<const ProgramInterface> interface, uint64_t seed) {
  ProgramInputs inputs{std::move(interface), {}, {}};
  inputs.scalars = inputs.interface->given();
  std::mt19937_64 random(seed);
  StandardNormal normal;
  for (const ProgramTensor &tensor : inputs.interface->tensors()) {
    if (!tensor.isRead())
      continue;
    NSA_ASSIGN_OR_RETURN(std::vector<int64_t> shape, tensor.shape(inputs.scalars));
    inputs.tensors.emplace(tensor.name, tensor.dtype == DType::kI32 ? HostTensor::make(tensor.dtype, std::move(shape))
                                                                    : drawTensor(tensor.dtype, std::move(shape),
                                                                                 [&] { return normal(random); }));
  }
  return inputs;
}

std::set<std::string> outputsOf(const ProgramInputs &inputs, bool withOptional) {
  std::set<std::string> outputs;
  for (const ProgramTensor &tensor : inputs.interface->tensors())
    if (tensor.isStored &&
        (tensor.isRead() ? inputs.tensors.contains(tensor.name) : withOptional || !tensor.isOptional))
      outputs.insert(tensor.name);
  return outputs;
}

Status DeviceProgram::add(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                          const HostTensor *source, bool isOutput) {
  Entry &entry = entries[name];
  entry.isOutput = isOutput;
  NSA_ASSIGN_OR_RETURN(entry.buffer, accelerator->allocate(static_cast<size_t>(elementsOf(shape) * dtypeBytes(dtype))));
  entry.tensor = contiguousTensor(entry.buffer.data(), dtype, shape);
  return source ? accelerator->upload(entry.buffer.data(), source->bytes.data(), entry.buffer.size())
                : accelerator->fill(entry.buffer.data(), poisonOf(dtype), entry.buffer.size());
}

Result<DeviceProgram> DeviceProgram::upload(Accelerator &accelerator, const ProgramInputs &inputs,
                                            const std::set<std::string> &outputs) {
  DeviceProgram job;
  job.accelerator = &accelerator;
  job.scalars = scalarsOf(inputs);
  for (const auto &[name, tensor] : inputs.tensors)
    NSA_RETURN_IF_ERROR(job.add(name, tensor.dtype, tensor.shape, &tensor, outputs.contains(name)));
  for (const std::string &name : outputs) {
    if (inputs.tensors.contains(name))
      continue;
    const ProgramTensor &declared =
        inputs.interface->tensors()[static_cast<size_t>(inputs.interface->findTensor(name))];
    NSA_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, declared.shape(inputs.scalars));
    NSA_RETURN_IF_ERROR(job.add(name, declared.dtype, shape, nullptr, true));
  }
  return job;
}

Status DeviceProgram::allocateWorkspace(const nsa_program *program) {
  size_t bytes = 0;
  NSA_RETURN_IF_ERROR(toStatus(nsa_program_workspace_size(program, &bytes, nullptr)));
  NSA_ASSIGN_OR_RETURN(workspace, accelerator->allocate(bytes));
  return Status::ok();
}

template <typename Use> Status DeviceProgram::pass(const Use &use) const {
  std::vector<nsa_program_tensor> tensors;
  for (const auto &[name, entry] : entries)
    tensors.push_back({name.c_str(), &entry.tensor});
  std::vector<nsa_program_scalar> given;
  for (const auto &[name, value] : scalars)
    given.push_back({name.c_str(), value});
  return toStatus(use(tensors.data(), tensors.size(), given.data(), given.size()));
}

Status DeviceProgram::enqueue(const nsa_program *program) const {
  return pass([&](const nsa_program_tensor *tensors, size_t count, const nsa_program_scalar *given, size_t givenCount) {
    return nsa_program_run(program, tensors, count, given, givenCount, workspace.data(), workspace.size(),
                           accelerator->stream(), nullptr);
  });
}

Status DeviceProgram::check(const nsa_program *program) const {
  return pass([&](const nsa_program_tensor *tensors, size_t count, const nsa_program_scalar *given, size_t givenCount) {
    return nsa_program_check(program, tensors, count, given, givenCount, accelerator->stream(), nullptr);
  });
}

// A store outside of a tensor is the program's fault, and of the workspace the library's.
Status DeviceProgram::checkGuards() const {
  NSA_RETURN_IF_ERROR(accelerator->checkGuards(workspace, "the workspace"));
  for (const auto &[name, entry] : entries)
    if (const Status status = accelerator->checkGuards(entry.buffer, name); !status.isOk())
      return Status(ErrorInfo{.code = ErrorCode::kInvalidArgument,
                              .field = "program",
                              .value = name,
                              .rule = "is stored to outside of its elements",
                              .message = "the program stores outside of its tensors: " + status.error().message,
                              .hint = "nsa check names stores without a bound, and nsa run --check the place"});
  return Status::ok();
}

Result<ProgramTensors> DeviceProgram::download() const {
  NSA_RETURN_IF_ERROR(checkGuards());
  ProgramTensors outputs;
  for (const auto &[name, entry] : entries) {
    if (!entry.isOutput)
      continue;
    const nsa_tensor &tensor = entry.tensor;
    HostTensor &target = outputs[name] =
        HostTensor::make(static_cast<DType>(tensor.dtype), {tensor.shape, tensor.shape + tensor.rank});
    NSA_RETURN_IF_ERROR(accelerator->download(target.bytes.data(), entry.buffer.data(), target.bytes.size()));
  }
  return outputs;
}

} // namespace nsa::tools
