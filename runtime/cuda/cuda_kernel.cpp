#include "runtime/cuda/cuda_kernel.h"

#include "runtime/base/text.h"
#include "runtime/cuda/tensor_map_cache.h"

namespace nsa::cuda {

namespace {
// Up to here a block gets dynamic shared memory without asking (CUDA programming guide, compute capabilities).
constexpr int64_t kSharedBytesWithoutOptIn = 48 * 1024;
// Up to here all GPUs with clusters have them (CUDA programming guide, thread block clusters).
constexpr int64_t kPortableCluster = 8;

// Returns how many blocks make a cluster. A kernel with clusters is compiled for their size, its choice `cluster`.
int64_t clusterOf(const Manifest &manifest) {
  int64_t cluster = 1;
  if (const auto found = manifest.config.find("cluster"); found != manifest.config.end())
    parseInteger(found->second, cluster);
  return cluster;
}
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
  NSA_RETURN_IF_ERROR(kernel->checkCluster(clusterOf(manifest), device));
  // Asking for attributes also makes a driver in lazy mode load the code now.
  NSA_CUDA_CALL(driver, funcGetAttribute, (&kernel->registers, FunctionAttribute::kRegisters, kernel->function));
  NSA_CUDA_CALL(driver, funcGetAttribute, (&kernel->localBytes, FunctionAttribute::kLocalBytes, kernel->function));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

Status CudaKernel::checkCluster(int64_t cluster, const DeviceInfo &device) const {
  if (cluster <= kPortableCluster)
    return Status::ok();
  NSA_CUDA_CALL(context.driver, funcSetAttribute, (function, FunctionAttribute::kNonPortableClusterAllowed, 1));
  LaunchAttribute size = {.name = LaunchAttributeName::kCluster, .value = {}};
  size.value.cluster = {.x = static_cast<unsigned>(cluster), .y = 1, .z = 1};
  LaunchConfig config = {};
  config.gridX = size.value.cluster.x;
  config.gridY = config.gridZ = config.blockY = config.blockZ = 1;
  config.blockX = threads;
  config.sharedBytes = sharedBytes;
  config.attributes = &size;
  config.attributeCount = 1;
  int active = 0;
  NSA_CUDA_CALL(context.driver, occupancyMaxActiveClusters, (&active, function, &config));
  return active > 0 ? Status::ok()
                    : Status::invalid("cluster", std::to_string(cluster),
                                      "must be a size of clusters of this kernel that " + device.name + " can run");
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
