#include "runtime/cuda/cuda_kernel.h"

#include "runtime/cuda/tensor_map_cache.h"

namespace nsa::cuda {

namespace {
// Up to here a block gets dynamic shared memory without asking (CUDA programming guide, compute capabilities).
constexpr int64_t kSharedBytesWithoutOptIn = 48 * 1024;
} // namespace

Result<std::unique_ptr<Kernel>> CudaKernel::load(const PrimaryContext &context, const DeviceInfo &device,
                                                 const Manifest &manifest, std::span<const std::byte> cubin) {
  if (manifest.sharedBytes > device.sharedBytesOptIn)
    return Status::error(ErrorCode::kUnsupported, "the kernel needs " + std::to_string(manifest.sharedBytes) +
                                                      " bytes of shared memory per block, " + device.name + " has " +
                                                      std::to_string(device.sharedBytesOptIn));
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  const Driver &driver = context.driver;
  std::unique_ptr<CudaKernel> kernel(new CudaKernel(context));
  kernel->threads = static_cast<unsigned>(manifest.threads);
  kernel->sharedBytes = static_cast<unsigned>(manifest.sharedBytes);

  DriverResult loaded = driver.moduleLoadData(&kernel->module, cubin.data());
  if (loaded == kErrorNoBinaryForGpu || loaded == kErrorInvalidImage) {
    std::string reason = driver.check(loaded, "moduleLoadData").error().message;
    return Status::error(ErrorCode::kUnsupported,
                         "code for " + manifest.target + " does not run on " + device.name + " (compute capability " +
                             std::to_string(device.computeMajor) + "." + std::to_string(device.computeMinor) +
                             ", driver " + versionText(driver.version()) + "): " + reason,
                         "NVRTC's major version must not exceed the driver's");
  }
  if (loaded != kSuccess)
    return driver.check(loaded, "moduleLoadData");
  NSA_CUDA_CALL(driver, moduleGetFunction, (&kernel->function, kernel->module, manifest.entry.c_str()));
  if (manifest.sharedBytes > kSharedBytesWithoutOptIn)
    NSA_CUDA_CALL(
        driver, funcSetAttribute,
        (kernel->function, FunctionAttribute::kMaxDynamicSharedBytes, static_cast<int>(manifest.sharedBytes)));
  // Asking for attributes also makes a driver in lazy mode load the code now.
  NSA_CUDA_CALL(driver, funcGetAttribute, (&kernel->registers, FunctionAttribute::kRegisters, kernel->function));
  NSA_CUDA_CALL(driver, funcGetAttribute, (&kernel->localBytes, FunctionAttribute::kLocalBytes, kernel->function));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

CudaKernel::~CudaKernel() {
  if (!module || !context.inOwnProcess())
    return;
  ContextScope scope(context);
  context.driver.moduleUnload(module);
}

Status CudaKernel::launch(const uint64_t *slots, const int32_t (&grid)[3], void *workspace, void *stream) const {
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  LaunchConfig config = {};
  config.gridX = static_cast<unsigned>(grid[0]);
  config.gridY = static_cast<unsigned>(grid[1]);
  config.gridZ = static_cast<unsigned>(grid[2]);
  config.blockX = threads;
  config.blockY = config.blockZ = 1;
  config.sharedBytes = sharedBytes;
  config.stream = static_cast<Stream>(stream);
  // One parameter: the struct of slots, which the driver copies.
  void *arguments[] = {const_cast<uint64_t *>(slots)};
  NSA_CUDA_CALL(context.driver, launchKernelEx, (&config, function, arguments, nullptr));
  return Status::ok();
}

Status CudaKernel::writeMap(const TensorMapShape &shape, uint64_t *slots) const {
  return writeTensorMap(context, shape, slots);
}

std::map<std::string, std::string> CudaKernel::evidence() const {
  return {{"registers", std::to_string(registers)}, {"local_bytes", std::to_string(localBytes)}};
}

} // namespace nsa::cuda
