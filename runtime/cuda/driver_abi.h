// The part of the CUDA driver's binary interface that the runtime uses. The driver's interface is declared here so that
// neither building nor installing needs a CUDA toolkit. The declarations have the names of cuda.h without the prefixes
// CU and cu. The values of the constants are equal to those of cuda.h; tests/unit/runtime/cuda_abi_test.cpp checks this
// if a CUDA toolkit is installed. The driver's interface is stable since driver 12.0: cuGetProcAddress is asked for the
// version 12.0 of each entry.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nsa::cuda {

using DriverResult = int;
inline constexpr DriverResult kSuccess = 0;
inline constexpr DriverResult kErrorInvalidValue = 1;
inline constexpr DriverResult kErrorOutOfMemory = 2;
inline constexpr DriverResult kErrorNotInitialized = 3;
inline constexpr DriverResult kErrorStubLibrary = 34;
inline constexpr DriverResult kErrorNoDevice = 100;
inline constexpr DriverResult kErrorNoBinaryForGpu = 209;
inline constexpr DriverResult kErrorInvalidImage = 200;
inline constexpr DriverResult kErrorStreamCaptureImplicit = 906;

using DeviceId = int;
using DevicePointer = unsigned long long;
using Context = struct ContextTag *;
using Module = struct ModuleTag *;
using Function = struct FunctionTag *;
using Stream = struct StreamTag *;
using Event = struct EventTag *;

enum class DeviceAttribute : int {
  kMultiprocessorCount = 16,
  kMemoryClockKHz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kSharedBytesOptIn = 97,
};

enum class FunctionAttribute : int {
  kLocalBytes = 3,
  kRegisters = 4,
  kMaxDynamicSharedBytes = 8,
  kNonPortableClusterAllowed = 14, // allows clusters of more than 8 blocks
};

enum class CaptureStatus : int { kNone = 0, kActive = 1, kInvalidated = 2 };
enum class CaptureMode : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kHostMapped = 2; // CU_MEMHOSTALLOC_DEVICEMAP

enum class LaunchAttributeName : int {
  kIgnore = 0,
  kCluster = 4,
  kProgrammaticSerialization = 6, // the kernel may start before its predecessor in the stream has ended
};

struct LaunchAttribute {
  LaunchAttributeName name;
  union alignas(8) {
    struct {
      unsigned x, y, z;
    } cluster;
    int allowed;
    char bytes[64];
  } value;
};

struct LaunchConfig {
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};

// A CUtensorMap, which describes memory to the bulk tensor copies of sm_90 and newer. A tensor map is an opaque value
// that a kernel takes as a parameter.
struct alignas(128) TensorMap { // aligned to 64 before CUDA 13
  uint64_t opaque[16];
};

enum class TensorMapType : int { kUint8 = 0, kInt32 = 3, kFloat16 = 6, kFloat32 = 7, kBfloat16 = 9 };
enum class TensorMapInterleave : int { kNone = 0 };
enum class TensorMapSwizzle : int { kNone = 0, k32 = 1, k64 = 2, k128 = 3 };    // in bytes
enum class TensorMapPromotion : int { kNone = 0, k64 = 1, k128 = 2, k256 = 3 }; // bytes that L2 fetches at once
enum class TensorMapFill : int { kZeros = 0 }; // what elements outside of the tensor read as

// clang-format off
// The one list of driver entries: X(field, exported name, parameter types).
#define NSA_CUDA_DRIVER_ENTRIES(X)                                                                        \
  X(init,                     cuInit,                     (unsigned flags))                               \
  X(getErrorName,             cuGetErrorName,             (DriverResult error, const char **text))        \
  X(getErrorString,           cuGetErrorString,           (DriverResult error, const char **text))        \
  X(deviceGetCount,           cuDeviceGetCount,           (int *count))                                   \
  X(deviceGet,                cuDeviceGet,                (DeviceId *device, int ordinal))                \
  X(deviceGetName,            cuDeviceGetName,            (char *name, int bytes, DeviceId device))       \
  X(deviceTotalMem,           cuDeviceTotalMem,           (size_t *bytes, DeviceId device))               \
  X(deviceGetAttribute,       cuDeviceGetAttribute,       (int *value, DeviceAttribute name, DeviceId device)) \
  X(devicePrimaryCtxRetain,   cuDevicePrimaryCtxRetain,   (Context *context, DeviceId device))            \
  X(devicePrimaryCtxRelease,  cuDevicePrimaryCtxRelease,  (DeviceId device))                              \
  X(devicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, (DeviceId device, unsigned *flags, int *active)) \
  X(threadExchangeCaptureMode, cuThreadExchangeStreamCaptureMode, (CaptureMode *mode))                    \
  X(ctxGetCurrent,            cuCtxGetCurrent,            (Context *context))                             \
  X(ctxPushCurrent,           cuCtxPushCurrent,           (Context context))                              \
  X(ctxPopCurrent,            cuCtxPopCurrent,            (Context *context))                             \
  X(moduleLoadData,           cuModuleLoadData,           (Module *module, const void *image))            \
  X(moduleUnload,             cuModuleUnload,             (Module module))                                \
  X(moduleGetFunction,        cuModuleGetFunction,        (Function *function, Module module, const char *name)) \
  X(funcGetAttribute,         cuFuncGetAttribute,         (int *value, FunctionAttribute name, Function function)) \
  X(funcSetAttribute,         cuFuncSetAttribute,         (Function function, FunctionAttribute name, int value)) \
  X(launchKernelEx,           cuLaunchKernelEx,           (const LaunchConfig *config, Function function, void **arguments, void **extra)) \
  X(occupancyMaxActiveClusters, cuOccupancyMaxActiveClusters, (int *count, Function function, const LaunchConfig *config)) \
  X(tensorMapEncodeTiled,     cuTensorMapEncodeTiled,     (TensorMap *map, TensorMapType type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strideBytes, const unsigned *box, const unsigned *elementSteps, TensorMapInterleave interleave, TensorMapSwizzle swizzle, TensorMapPromotion promotion, TensorMapFill fill)) \
  X(memAlloc,                 cuMemAlloc,                 (DevicePointer *pointer, size_t bytes))         \
  X(memGetInfo,               cuMemGetInfo,               (size_t *free, size_t *total))                  \
  X(memFree,                  cuMemFree,                  (DevicePointer pointer))                        \
  X(memHostAlloc,             cuMemHostAlloc,             (void **pointer, size_t bytes, unsigned flags)) \
  X(memFreeHost,              cuMemFreeHost,              (void *pointer))                                \
  X(memcpyHtoDAsync,          cuMemcpyHtoDAsync,          (DevicePointer to, const void *from, size_t bytes, Stream stream)) \
  X(memcpyDtoHAsync,          cuMemcpyDtoHAsync,          (void *to, DevicePointer from, size_t bytes, Stream stream)) \
  X(memsetD8Async,            cuMemsetD8Async,            (DevicePointer to, unsigned char value, size_t bytes, Stream stream)) \
  X(streamCreate,             cuStreamCreate,             (Stream *stream, unsigned flags))               \
  X(streamDestroy,            cuStreamDestroy,            (Stream stream))                                \
  X(streamSynchronize,        cuStreamSynchronize,        (Stream stream))                                \
  X(streamIsCapturing,        cuStreamIsCapturing,        (Stream stream, CaptureStatus *status))         \
  X(eventCreate,              cuEventCreate,              (Event *event, unsigned flags))                 \
  X(eventDestroy,             cuEventDestroy,             (Event event))                                  \
  X(eventRecord,              cuEventRecord,              (Event event, Stream stream))                   \
  X(eventSynchronize,         cuEventSynchronize,         (Event event))                                  \
  X(eventElapsedTime,         cuEventElapsedTime,         (float *milliseconds, Event start, Event end))
// clang-format on

} // namespace nsa::cuda
