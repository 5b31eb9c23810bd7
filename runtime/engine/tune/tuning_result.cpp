#include "runtime/engine/tune/tuning_result.h"

#include "runtime/base/half.h"

#include <bit>
#include <cstring>

namespace nsa {

void TuningResult::Output::addOwnBlocks(const Spec &spec, int64_t before, int64_t queries) {
  for (int64_t query = 0; query < queries; ++query)
    ownBlocks.insert(ownBlocks.end(), static_cast<size_t>(spec.kvHeads), (before + query) / spec.selBlock);
}

Status ComparedOutput::poison(Device &device) const {
  // All bits set is a NaN in bf16, fp16 and fp32. -1 is what the tail of a list holds: lists and counts get something
  // else, which neither may hold.
  const std::vector<std::byte> nan(static_cast<size_t>(elements * dtypeBytes(dtype)), std::byte{0xff});
  const std::vector<int32_t> noBlocks(dtype == DType::kI32 ? static_cast<size_t>(elements) : 0, -2);
  const void *source = noBlocks.empty() ? static_cast<const void *>(nan.data()) : noBlocks.data();
  return device.upload(data, source, nan.size());
}

Result<TuningResult::Output> ComparedOutput::read(Device &device) const {
  const auto width = static_cast<size_t>(dtypeBytes(dtype));
  std::vector<std::byte> host(static_cast<size_t>(elements) * width);
  NSA_RETURN_IF_ERROR(device.download(host.data(), data, host.size()));
  std::vector<float> values(static_cast<size_t>(elements));
  for (size_t i = 0; i < values.size(); ++i) {
    int32_t wide = 0;
    uint16_t narrow = 0;
    std::memcpy(width == sizeof narrow ? static_cast<void *>(&narrow) : &wide, host.data() + i * width, width);
    values[i] = dtype == DType::kBf16  ? bf16ToFloat(narrow)
                : dtype == DType::kF16 ? fp16ToFloat(narrow)
                : dtype == DType::kI32 ? static_cast<float>(wide)
                                       : std::bit_cast<float>(wide);
  }
  return TuningResult::Output{name, kind, rowElements, std::move(values), {}};
}

} // namespace nsa
