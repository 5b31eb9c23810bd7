// The tensor of DLPack 1.x (dlpack.h; its fields are stable since 0.6). DlTensor is declared here because the dlpack.h
// that a distribution installs may be of an older version. Only the struct DLTensor of DLPack is declared here, because
// the host keeps the DLManagedTensor and decides when it is freed.
#pragma once

#include <cstdint>

namespace nsa::capi {

enum class DlDeviceType : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
enum class DlTypeCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4 };

struct DlTensor {
  void *data;
  struct {
    DlDeviceType type;
    int32_t id;
  } device;
  int32_t rank;
  struct {
    DlTypeCode code;
    uint8_t bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape;
  int64_t *strides; // elements; null means row-major (before DLPack 1.2)
  uint64_t byteOffset;
};
static_assert(sizeof(DlTensor) == 48);

} // namespace nsa::capi
