#include "bench/bare_launch.h"

#include "runtime/base/device_name.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/engine/graph/pipeline.h"

namespace nsa::bench {
Result<std::unique_ptr<BareLaunch>> BareLaunch::make(const std::string &name, const StoredKernel &stored) {
  NSA_ASSIGN_OR_RETURN(Manifest manifest, Manifest::parse(stored.manifest));
  std::unique_ptr<BareLaunch> result(new BareLaunch);
  NSA_ASSIGN_OR_RETURN(const std::optional<int> gpu, gpuOrdinal(name));
  NSA_ASSIGN_OR_RETURN(result->device, gpu ? cuda::CudaDevice::open(*gpu) : cpu::CpuDevice::open(0, ""));
  NSA_ASSIGN_OR_RETURN(result->kernel, LoadedKernel::load(*result->device, stored.content,
                                                          std::make_shared<const Manifest>(manifest), stored.binary));
  if (gpu) {
    NSA_ASSIGN_OR_RETURN(const cuda::Driver *driver, cuda::Driver::get());
    cuda::DeviceId id = 0;
    NSA_CUDA_CALL(*driver, deviceGet, (&id, *gpu));
    result->primary.emplace(*driver, id);
    NSA_RETURN_IF_ERROR(result->loadOnGpu(manifest, stored.binary));
    return result;
  }
  result->pool = std::make_unique<cpu::WorkerPool>(1);
  uint64_t entry = 0;
  parseInteger(std::string_view(manifest.entry).substr(1), entry);
  NSA_ASSIGN_OR_RETURN(result->image, cpu::CpuImage::map(stored.binary, entry));
  return result;
}

Status BareLaunch::loadOnGpu(const Manifest &manifest, std::span<const std::byte> cubin) {
  NSA_RETURN_IF_ERROR(primary->retain());
  cuda::ContextScope scope(*primary);
  NSA_RETURN_IF_ERROR(scope.status());
  const cuda::Driver &driver = primary->driver;
  NSA_CUDA_CALL(driver, moduleLoadData, (&module, cubin.data()));
  NSA_CUDA_CALL(driver, moduleGetFunction, (&function, module, manifest.entry.c_str()));
  NSA_CUDA_CALL(driver, funcSetAttribute,
                (function, cuda::FunctionAttribute::kMaxDynamicSharedBytes, static_cast<int>(manifest.sharedBytes)));
  threads = static_cast<unsigned>(manifest.threads);
  sharedBytes = static_cast<unsigned>(manifest.sharedBytes);
  return Status::ok();
}

BareLaunch::~BareLaunch() {
  if (!module)
    return;
  cuda::ContextScope scope(*primary);
  primary->driver.moduleUnload(module);
}

Status BareLaunch::prepare(const CallRules &rules, const Bindings &bindings, LaunchArguments &arguments) const {
  Call call;
  NSA_RETURN_IF_ERROR(prepareCall(rules, bindings, call));
  const KernelCall launch = singleCall(rules.spec.op, call, {});
  NSA_RETURN_IF_ERROR(kernel->grid(launch.grid, arguments.grid));
  return kernel->fillArguments(launch, nullptr, arguments.slots);
}

Status BareLaunch::launch(const LaunchArguments &arguments, void *workspace, void *stream) const {
  if (pool) {
    pool->run(image->entry(), arguments.slots.data(), arguments.grid, workspace);
    return Status::ok();
  }
  cuda::LaunchConfig config = {};
  config.gridX = static_cast<unsigned>(arguments.grid[0]);
  config.gridY = static_cast<unsigned>(arguments.grid[1]);
  config.gridZ = static_cast<unsigned>(arguments.grid[2]);
  config.blockX = threads;
  config.blockY = config.blockZ = 1;
  config.sharedBytes = sharedBytes;
  config.stream = static_cast<cuda::Stream>(stream);
  void *parameters[] = {const_cast<uint64_t *>(arguments.slots.data())};
  NSA_CUDA_CALL(primary->driver, launchKernelEx, (&config, function, parameters, nullptr));
  return Status::ok();
}

} // namespace nsa::bench
