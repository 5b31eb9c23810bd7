#include "runtime/capi/dlpack.h"

#include "runtime/base/device_name.h"
#include "runtime/capi/sized_structs.h"
#include "runtime/engine/call/tensor.h"

#include <algorithm>
#include <string_view>

namespace nsa::capi {

namespace {

struct TypeRow {
  nsa_dtype dtype;
  DlTypeCode code;
  uint8_t bits;
};
constexpr TypeRow kTypes[] = {{NSA_BF16, DlTypeCode::kBfloat, 16},
                              {NSA_FP16, DlTypeCode::kFloat, 16},
                              {NSA_FP32, DlTypeCode::kFloat, 32},
                              {NSA_INT32, DlTypeCode::kInt, 32}};

Status fromDlpack(const DlTensor &source, nsa_tensor &result) {
  switch (source.device.type) {
  case DlDeviceType::kCpu:
  case DlDeviceType::kCuda:
  case DlDeviceType::kCudaHost:
  case DlDeviceType::kCudaManaged:
    break;
  default:
    return Status::invalid("device.device_type", std::to_string(static_cast<int>(source.device.type)),
                           "must be kDLCPU (1), kDLCUDA (2), kDLCUDAHost (3) or kDLCUDAManaged (13)");
  }
  if (source.dtype.lanes != 1)
    return Status::invalid("dtype.lanes", std::to_string(source.dtype.lanes), "must be 1");
  const TypeRow *type = nullptr;
  for (const TypeRow &row : kTypes)
    if (row.code == source.dtype.code && row.bits == source.dtype.bits)
      type = &row;
  if (!type)
    return Status::invalid("dtype",
                           "code " + std::to_string(static_cast<int>(source.dtype.code)) + ", " +
                               std::to_string(source.dtype.bits) + " bits",
                           "must be bfloat 16, float 16, float 32 or int 32");
  if (source.rank < 1 || source.rank > kMaxTensorRank)
    return Status::invalid("ndim", std::to_string(source.rank), "must be from 1 to 5");
  NSA_RETURN_IF_ERROR(requirePointer(source.shape, "shape"));

  result.data = source.data ? static_cast<char *>(source.data) + source.byteOffset : nullptr;
  result.dtype = type->dtype;
  result.rank = source.rank;
  const auto axes = static_cast<size_t>(source.rank);
  std::copy_n(source.shape, axes, result.shape);
  NSA_RETURN_IF_ERROR(setRowMajorStrides({result.shape, axes}, {result.strides, axes}));
  if (source.strides)
    std::copy_n(source.strides, axes, result.strides);
  return Status::ok();
}

Status toDlpack(nsa_tensor &source, std::string_view device, DlTensor &target) {
  const nsa_tensor *read = &source;
  nsa_tensor storage;
  NSA_RETURN_IF_ERROR(readStruct(read, storage, "tensor"));
  int dtype = numberOf(source.dtype);
  if (dtype < NSA_BF16 || dtype > NSA_INT32)
    return Status::invalid("tensor.dtype", std::to_string(dtype), "must be a value of nsa_dtype");
  if (source.rank < 1 || source.rank > kMaxTensorRank)
    return Status::invalid("tensor.rank", std::to_string(source.rank), "must be from 1 to 5");
  DlTensor result = {}; // NOLINT(bugprone-invalid-enum-default-initialization): device.type is set below
  NSA_ASSIGN_OR_RETURN(const std::optional<int> ordinal, gpuOrdinal(device));
  result.device = {ordinal ? DlDeviceType::kCuda : DlDeviceType::kCpu, ordinal.value_or(0)};
  result.data = source.data;
  result.rank = source.rank;
  result.dtype.code = kTypes[dtype].code;
  result.dtype.bits = kTypes[dtype].bits;
  result.dtype.lanes = 1;
  result.shape = source.shape;
  result.strides = source.strides;
  target = result;
  return Status::ok();
}

} // namespace

} // namespace nsa::capi

nsa_status nsa_tensor_from_dlpack_sized(const void *dlTensor, nsa_tensor *tensor, size_t bytes,
                                        nsa_error *error) noexcept {
  using namespace nsa::capi;
  return guarded(error, [&]() -> nsa::Status {
    NSA_RETURN_IF_ERROR(requirePointer(dlTensor, "dl_tensor"));
    NSA_RETURN_IF_ERROR(requirePointer(tensor, "tensor"));
    NSA_RETURN_IF_ERROR(
        checkSize(bytes, SizedStruct<nsa_tensor>::kLeastBytes, SizedStruct<nsa_tensor>::kName, "tensor_bytes"));
    nsa_tensor result = {};
    NSA_RETURN_IF_ERROR(fromDlpack(*static_cast<const DlTensor *>(dlTensor), result));
    fillStruct(result, tensor, bytes);
    return nsa::Status::ok();
  });
}

nsa_status nsa_tensor_to_dlpack(nsa_tensor *tensor, const char *device, void *dlTensor, nsa_error *error) noexcept {
  using namespace nsa::capi;
  return guarded(error, [&]() -> nsa::Status {
    NSA_RETURN_IF_ERROR(requirePointer(tensor, "tensor"));
    NSA_RETURN_IF_ERROR(requirePointer(device, "device"));
    NSA_RETURN_IF_ERROR(requirePointer(dlTensor, "dl_tensor"));
    return toDlpack(*tensor, device, *static_cast<DlTensor *>(dlTensor));
  });
}
