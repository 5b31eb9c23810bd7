#include "runtime/engine/program/program_trial.h"

#include "runtime/engine/program/program_call.h"
#include "runtime/engine/tune/drawn_values.h"

#include <algorithm>

namespace nsa {

Result<std::unique_ptr<Trial>> ProgramTrial::make(Device &device, std::shared_ptr<const ProgramInterface> interface,
                                                  const std::shared_ptr<const ProgramInterface> &reference,
                                                  uint64_t seed, double mostBytes) {
  NSA_ASSIGN_OR_RETURN(TrialLaunches launches, TrialLaunches::make(device, [interface](DeviceReport report) {
                         return interface->statusOf(report);
                       }));
  std::unique_ptr<ProgramTrial> trial(new ProgramTrial(device, std::move(interface), seed, std::move(launches)));
  NSA_RETURN_IF_ERROR(trial->allocate(reference, mostBytes));
  NSA_RETURN_IF_ERROR(trial->fill());
  return std::unique_ptr<Trial>(std::move(trial));
}

Status ProgramTrial::allocate(const std::shared_ptr<const ProgramInterface> &reference, double mostBytes) {
  KnownScalars scalars = interface->given();
  // A scalar that no size is made of is 1 where its value was not said.
  for (size_t i = 0; i < interface->scalars().size(); ++i)
    if (!scalars.has(static_cast<int>(i)))
      scalars.set(static_cast<int>(i), interface->scalars()[i].slotOf(1));
  double bytes = 0;
  std::vector<NamedTensor> bound;
  for (const ProgramTensor &declared : interface->tensors()) {
    Tensor tensor;
    tensor.dtype = declared.dtype;
    int64_t elements = 1;
    const Result<std::vector<int64_t>> shape = declared.shape(scalars);
    if (!shape)
      return interface->named(shape.status());
    for (const int64_t extent : *shape) {
      tensor.addAxis(extent);
      elements *= extent;
    }
    const auto rank = static_cast<size_t>(tensor.rank);
    NSA_RETURN_IF_ERROR(setRowMajorStrides({tensor.shape.data(), rank}, {tensor.strides.data(), rank}));
    bytes += static_cast<double>(elements) * dtypeBytes(declared.dtype);
    if (bytes > mostBytes)
      return interface->named(Status::error(ErrorCode::kOutOfMemory,
                                            "its tensors do not fit into the memory for a measurement",
                                            "make it with smaller sizes: tuned kernels serve all sizes"));
    NSA_ASSIGN_OR_RETURN(DeviceBuffer buffer,
                         DeviceBuffer::allocate(device, static_cast<size_t>(std::max<int64_t>(elements, 1)) *
                                                            static_cast<size_t>(dtypeBytes(declared.dtype))));
    tensor.data = buffer.data();
    memory.push_back({&declared, elements, std::move(buffer)});
    bound.push_back({declared.name, tensor});
    if (!declared.isStored)
      continue;
    const auto kind = declared.dtype == DType::kI32 ? TuningResult::Kind::kIntegers : TuningResult::Kind::kRows;
    outputs.push_back(
        {declared.name, kind, tensor.rank > 0 ? tensor.shape[rank - 1] : 1, elements, tensor.data, declared.dtype});
  }
  std::vector<NamedScalar> given;
  for (size_t i = 0; i < interface->scalars().size(); ++i)
    given.push_back({interface->scalars()[i].name, interface->scalars()[i].valueOf(scalars.values[i])});
  NSA_RETURN_IF_ERROR(prepareProgramCall(*interface, bound, given, call));
  if (!reference) {
    referenceCall = call;
    return Status::ok();
  }
  return prepareReferenceCall(*reference, bound, given, referenceCall);
}

// What a program stores to is what it was before each compared run. What it reads is as it was, too: a wrong candidate
// may have stored there.
Status ProgramTrial::fill() {
  std::mt19937_64 draw(seed);
  for (const ComparedOutput &output : outputs)
    NSA_RETURN_IF_ERROR(output.poison(device));
  for (Memory &each : memory) {
    if (!each.tensor->isRead())
      continue;
    if (each.tensor->dtype == DType::kI32) {
      // Indices of 0 lead into every tensor.
      const std::vector<int32_t> zeros(static_cast<size_t>(std::max<int64_t>(each.elements, 1)));
      NSA_RETURN_IF_ERROR(device.upload(each.buffer.data(), zeros.data(), zeros.size() * sizeof(int32_t)));
    } else if (each.elements > 0) {
      NSA_RETURN_IF_ERROR(fillDrawn(device, each.buffer.data(), each.tensor->dtype, each.elements, 0, draw));
    }
  }
  return Status::ok();
}

Result<TuningResult> ProgramTrial::check(const LoadedKernel &kernel, const KernelCall &tried) {
  NSA_RETURN_IF_ERROR(fill());
  TuningResult result;
  NSA_RETURN_IF_ERROR(launches.run(kernel, tried));
  for (const ComparedOutput &output : outputs) {
    NSA_ASSIGN_OR_RETURN(TuningResult::Output values, output.read(device));
    result.outputs.push_back(std::move(values));
  }
  return result;
}

std::string ProgramTrial::shapeText() const {
  std::string text;
  for (size_t i = 0; i < interface->scalars().size(); ++i)
    if (interface->isSize(static_cast<int>(i)))
      text.append(text.empty() ? "" : " ")
          .append(interface->scalars()[i].name)
          .append("=" + std::to_string(interface->given().integer(static_cast<int>(i))));
  return text.empty() ? "one size" : text;
}

} // namespace nsa
