#include "bench/bare_launch.h"

#include "runtime/base/device_name.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/engine/graph/pipeline.h"

#include <algorithm>

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
  NSA_RETURN_IF_ERROR(kernel->grid(launch.sizes(), arguments.grid));
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

Result<std::unique_ptr<LaunchCaller>> LaunchCaller::make(const std::string &device, const BareLaunch &bare,
                                                         const LaunchRequest &request, nsa_plan *plan) {
  auto caller = std::make_unique<LaunchCaller>();
  NSA_ASSIGN_OR_RETURN(caller->accelerator, tools::Accelerator::open(device));
  Bindings internal;
  for (const auto &[name, dim] : {std::pair{NSA_Q, request.spec.qkDim},
                                  {NSA_K, request.spec.qkDim},
                                  {NSA_V, request.spec.vDim},
                                  {NSA_OUT, request.spec.vDim}}) {
    NSA_ASSIGN_OR_RETURN(tools::Buffer buffer, caller->accelerator->allocate(static_cast<size_t>(dim) * 2));
    NSA_RETURN_IF_ERROR(caller->accelerator->fill(buffer.data(), 0, buffer.size()));
    nsa_tensor &tensor = caller->tensors[caller->count] = NSA_INIT(nsa_tensor);
    tensor.data = buffer.data();
    tensor.dtype = NSA_BF16;
    tensor.rank = 4;
    Tensor &same = internal[static_cast<TensorName>(name)];
    same = {.data = buffer.data(), .dtype = DType::kBf16, .rank = 4, .shape = {1, 1, 1, dim}, .strides = {}};
    same.strides = {dim, dim, dim, 1};
    std::copy_n(same.shape.begin(), 4, tensor.shape);
    std::copy_n(same.strides.begin(), 4, tensor.strides);
    caller->bindings[caller->count++] = {name, &tensor};
    caller->buffers.push_back(std::move(buffer));
  }
  NSA_ASSIGN_OR_RETURN(size_t bytes, tools::workspaceSize(plan));
  NSA_ASSIGN_OR_RETURN(caller->workspace, caller->accelerator->allocate(bytes));
  NSA_RETURN_IF_ERROR(bare.prepare(CallRules(request.spec, request.maxima), internal, caller->arguments));
  return caller;
}

Status LaunchCaller::bareLaunches(const BareLaunch &bare, int calls) const {
  for (int i = 0; i < calls; ++i)
    NSA_RETURN_IF_ERROR(bare.launch(arguments, workspace.data(), accelerator->stream()));
  return Status::ok();
}

Status LaunchCaller::runs(const nsa_plan *plan, int calls) const {
  nsa_error error;
  for (int i = 0; i < calls; ++i)
    if (nsa_run(plan, bindings.data(), count, workspace.data(), workspace.size(), accelerator->stream(), &error) !=
        NSA_OK)
      return tools::toStatus(error.code);
  return Status::ok();
}

} // namespace nsa::bench
