// The runtime declares the driver's interface itself; where a toolkit is found, this compares it with cuda.h.
#include "runtime/cuda/driver_abi.h"

#include <cstddef>
#include <cuda.h>
#include <gtest/gtest.h>
#include <type_traits>

using namespace nsa;

namespace {

static_assert(sizeof(cuda::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(cuda::LaunchConfig, gridX) == offsetof(CUlaunchConfig, gridDimX));
static_assert(offsetof(cuda::LaunchConfig, blockX) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(cuda::LaunchConfig, sharedBytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(cuda::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(cuda::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(cuda::LaunchConfig, attributeCount) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(cuda::LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(cuda::LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(cuda::TensorMap) == sizeof(CUtensorMap) && alignof(cuda::TensorMap) % alignof(CUtensorMap) == 0);
static_assert(sizeof(cuda::DeviceId) == sizeof(CUdevice));
static_assert(std::is_same_v<cuda::DevicePointer, CUdeviceptr>);

template <typename Ours, typename Theirs> constexpr bool same(Ours ours, Theirs theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(same(cuda::kErrorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY));
static_assert(same(cuda::kErrorStubLibrary, CUDA_ERROR_STUB_LIBRARY));
static_assert(same(cuda::kErrorNoDevice, CUDA_ERROR_NO_DEVICE));
static_assert(same(cuda::kErrorNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU));
static_assert(same(cuda::kErrorInvalidImage, CUDA_ERROR_INVALID_IMAGE));
static_assert(same(cuda::kErrorStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT));
static_assert(same(cuda::DeviceAttribute::kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
static_assert(same(cuda::DeviceAttribute::kMemoryClockKHz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE));
static_assert(same(cuda::DeviceAttribute::kMemoryBusBits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH));
static_assert(same(cuda::DeviceAttribute::kL2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
static_assert(same(cuda::DeviceAttribute::kComputeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
static_assert(same(cuda::DeviceAttribute::kComputeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
static_assert(same(cuda::DeviceAttribute::kSharedBytesOptIn, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
static_assert(same(cuda::FunctionAttribute::kLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
static_assert(same(cuda::FunctionAttribute::kRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS));
static_assert(same(cuda::FunctionAttribute::kMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
static_assert(same(cuda::FunctionAttribute::kNonPortableClusterAllowed,
                   CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED));
static_assert(same(cuda::LaunchAttributeName::kIgnore, CU_LAUNCH_ATTRIBUTE_IGNORE));
static_assert(same(cuda::LaunchAttributeName::kCluster, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
static_assert(same(cuda::LaunchAttributeName::kProgrammaticSerialization,
                   CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
static_assert(same(cuda::TensorMapType::kUint8, CU_TENSOR_MAP_DATA_TYPE_UINT8));
static_assert(same(cuda::TensorMapType::kInt32, CU_TENSOR_MAP_DATA_TYPE_INT32));
static_assert(same(cuda::TensorMapType::kFloat16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16));
static_assert(same(cuda::TensorMapType::kFloat32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32));
static_assert(same(cuda::TensorMapType::kBfloat16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16));
static_assert(same(cuda::TensorMapInterleave::kNone, CU_TENSOR_MAP_INTERLEAVE_NONE));
static_assert(same(cuda::TensorMapSwizzle::k32, CU_TENSOR_MAP_SWIZZLE_32B));
static_assert(same(cuda::TensorMapSwizzle::k64, CU_TENSOR_MAP_SWIZZLE_64B));
static_assert(same(cuda::TensorMapSwizzle::k128, CU_TENSOR_MAP_SWIZZLE_128B));
static_assert(same(cuda::TensorMapPromotion::k128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B));
static_assert(same(cuda::TensorMapPromotion::k256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B));
static_assert(same(cuda::TensorMapFill::kZeros, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
static_assert(same(cuda::CaptureStatus::kActive, CU_STREAM_CAPTURE_STATUS_ACTIVE));
static_assert(same(cuda::CaptureStatus::kInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED));
static_assert(same(cuda::kStreamNonBlocking, CU_STREAM_NON_BLOCKING));
static_assert(same(cuda::kHostMapped, CU_MEMHOSTALLOC_DEVICEMAP));

// Each entry: as many parameters as the toolkit's declaration, each of the same size.
template <typename... Ours, typename... Theirs>
constexpr bool sameParameters(cuda::DriverResult (*)(Ours...), CUresult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs))
    return ((sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>) && ...);
  return false;
}

TEST(CudaAbi, EntriesMatchTheToolkit) {
// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none
#define NSA_COMPARE(field, symbol, parameters)                                                                         \
  {                                                                                                                    \
    using namespace nsa::cuda;                                                                                         \
    using Entry = DriverResult(*) parameters;                                                                          \
    EXPECT_TRUE(sameParameters(Entry(nullptr), static_cast<decltype(&::symbol)>(nullptr))) << #symbol;                 \
  }
  // NOLINTEND(bugprone-macro-parentheses)
  NSA_CUDA_DRIVER_ENTRIES(NSA_COMPARE)
#undef NSA_COMPARE
}

} // namespace
