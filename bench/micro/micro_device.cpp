#include "bench/micro/micro_device.h"

#include "runtime/base/device_name.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace nsa::bench {
namespace {

constexpr const char *kTarget = "sm_90a";
constexpr int kWarmUps = 2;

Status unavailableDevice(const std::string &name, const std::string &reason) {
  return Status::error(ErrorCode::kUnavailable, "there is nothing to measure on " + name + ": " + reason,
                       "run it on a machine with a Hopper GPU (H100, H200)");
}

} // namespace

double medianClocks(std::vector<int64_t> clocks) {
  const auto middle = clocks.begin() + static_cast<long>(clocks.size() / 2);
  std::nth_element(clocks.begin(), middle, clocks.end());
  return static_cast<double>(*middle);
}

Result<std::unique_ptr<MicroDevice>> MicroDevice::open(const std::string &name) {
  NSA_ASSIGN_OR_RETURN(const std::optional<int> ordinal, gpuOrdinal(name));
  if (!ordinal)
    return unavailableDevice(name, "it is no GPU");
  NSA_ASSIGN_OR_RETURN(const cuda::Driver *driver, cuda::Driver::get());
  std::unique_ptr<MicroDevice> opened(new MicroDevice);
  NSA_ASSIGN_OR_RETURN(opened->device, tools::Accelerator::open(name));
  NSA_ASSIGN_OR_RETURN(opened->deviceInfo, cuda::readDeviceInfo(*driver, *ordinal));
  if (opened->info().target != kTarget)
    return unavailableDevice(name,
                             opened->info().name + " is " + opened->info().target + ", the kernels are for " + kTarget);
  opened->context.emplace(*driver, opened->info().device);
  NSA_RETURN_IF_ERROR(opened->context->retain());
  NSA_ASSIGN_OR_RETURN(opened->nvrtc, Nvrtc::open({.path = "", .driverVersion = driver->version()}));
  return opened;
}

MicroDevice::~MicroDevice() {
  if (!context)
    return;
  cuda::ContextScope scope(*context);
  for (const Loaded &loaded : kernels)
    context->driver.moduleUnload(loaded.module);
}

const MicroDevice::Loaded *MicroDevice::find(const MicroSource &source) const {
  const auto found =
      std::find_if(kernels.begin(), kernels.end(), [&](const Loaded &loaded) { return loaded.source == source; });
  return found == kernels.end() ? nullptr : &*found;
}

Status MicroDevice::load(const std::vector<MicroSource> &sources) {
  std::vector<MicroSource> wanted;
  for (const MicroSource &source : sources)
    if (!find(source) && std::find(wanted.begin(), wanted.end(), source) == wanted.end())
      wanted.push_back(source);
  std::vector<std::optional<Result<NvrtcOutput>>> outputs(wanted.size());
  {
    std::atomic<size_t> next = 0;
    auto work = [&] {
      for (size_t i; (i = next++) < wanted.size();) {
        Result<std::string> text = microText(wanted[i], microKernelFolder());
        if (!text)
          outputs[i].emplace(text.status());
        else
          outputs[i].emplace(nvrtc->compile(*text, wanted[i].name(), kTarget, Nvrtc::Output::kCubin));
      }
    };
    std::vector<std::jthread> threads;
    const size_t cores = std::max<size_t>(std::thread::hardware_concurrency(), 1);
    for (size_t i = 1; i < std::min(cores, wanted.size()); ++i)
      threads.emplace_back(work);
    work();
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    NSA_RETURN_IF_ERROR(outputs[i]->status());
    NSA_RETURN_IF_ERROR(loadOne(wanted[i], **outputs[i]));
  }
  return Status::ok();
}

Status MicroDevice::loadOne(const MicroSource &source, const NvrtcOutput &output) {
  cuda::ContextScope scope(*context);
  NSA_RETURN_IF_ERROR(scope.status());
  const cuda::Driver &driver = context->driver;
  Loaded &loaded = kernels.emplace_back();
  loaded.source = source;
  NSA_CUDA_CALL(driver, moduleLoadData, (&loaded.module, output.bytes.data()));
  NSA_CUDA_CALL(driver, moduleGetFunction, (&loaded.function, loaded.module, output.entry.c_str()));
  NSA_CUDA_CALL(driver, funcGetAttribute, (&loaded.localBytes, cuda::FunctionAttribute::kLocalBytes, loaded.function));
  NSA_CUDA_CALL(driver, funcSetAttribute,
                (loaded.function, cuda::FunctionAttribute::kMaxDynamicSharedBytes,
                 static_cast<int>(info().sharedBytesOptIn))); // they have no static shared memory
  NSA_CUDA_CALL(driver, funcSetAttribute, (loaded.function, cuda::FunctionAttribute::kNonPortableClusterAllowed, 1));
  return Status::ok();
}

int MicroDevice::spilledBytes(const MicroSource &source) const {
  const Loaded *loaded = find(source);
  return loaded ? loaded->localBytes : 0;
}

cuda::LaunchConfig MicroDevice::configOf(const MicroLaunch &launch, cuda::LaunchAttribute (&attributes)[2]) const {
  unsigned count = 0;
  if (launch.cluster) {
    cuda::LaunchAttribute &cluster = attributes[count++];
    cluster = {};
    cluster.name = cuda::LaunchAttributeName::kCluster;
    cluster.value.cluster = {.x = launch.cluster, .y = 1, .z = 1};
  }
  if (launch.programmatic) {
    cuda::LaunchAttribute &programmatic = attributes[count++];
    programmatic = {};
    programmatic.name = cuda::LaunchAttributeName::kProgrammaticSerialization;
    programmatic.value.allowed = 1;
  }
  cuda::LaunchConfig config = {};
  config.gridX = launch.blocks;
  config.gridY = config.gridZ = config.blockY = config.blockZ = 1;
  config.blockX = launch.threads;
  config.sharedBytes = launch.sharedBytes;
  config.stream = static_cast<cuda::Stream>(device->stream());
  config.attributes = attributes;
  config.attributeCount = count;
  return config;
}

Status MicroDevice::launch(const MicroSource &source, const MicroLaunch &launch, std::vector<void *> parameters,
                           int times) const {
  const Loaded *loaded = find(source);
  if (!loaded)
    return Status::error(ErrorCode::kInternal, source.name() + " was not loaded");
  cuda::ContextScope scope(*context);
  NSA_RETURN_IF_ERROR(scope.status());
  cuda::LaunchAttribute attributes[2];
  const cuda::LaunchConfig config = configOf(launch, attributes);
  for (int i = 0; i < times; ++i)
    NSA_CUDA_CALL(context->driver, launchKernelEx, (&config, loaded->function, parameters.data(), nullptr));
  return Status::ok();
}

Result<int> MicroDevice::activeClusters(const MicroSource &source, const MicroLaunch &launch) const {
  const Loaded *loaded = find(source);
  if (!loaded)
    return Status::error(ErrorCode::kInternal, source.name() + " was not loaded");
  cuda::ContextScope scope(*context);
  NSA_RETURN_IF_ERROR(scope.status());
  cuda::LaunchAttribute attributes[2];
  const cuda::LaunchConfig config = configOf(launch, attributes);
  int count = 0;
  NSA_CUDA_CALL(context->driver, occupancyMaxActiveClusters, (&count, loaded->function, &config));
  return count;
}

Result<cuda::TensorMap> MicroDevice::tensorMap(const MicroMatrix &matrix, unsigned boxColumns, unsigned boxRows) const {
  cuda::ContextScope scope(*context); // the driver wants one, though the map is of none
  NSA_RETURN_IF_ERROR(scope.status());
  cuda::TensorMap map = {};
  const uint64_t sizes[4] = {matrix.columns, matrix.rows, 1, 1};
  const uint64_t matrixBytes = matrix.rows * matrix.rowBytes;
  const uint64_t strides[3] = {matrix.rowBytes, matrixBytes, matrixBytes};
  const unsigned box[4] = {boxColumns, boxRows, 1, 1}, steps[4] = {1, 1, 1, 1};
  NSA_CUDA_CALL(context->driver, tensorMapEncodeTiled,
                (&map, cuda::TensorMapType::kBfloat16, 4, matrix.data, sizes, strides, box, steps,
                 cuda::TensorMapInterleave::kNone, cuda::TensorMapSwizzle::k128, cuda::TensorMapPromotion::k256,
                 cuda::TensorMapFill::kZeros));
  return map;
}

Result<std::vector<double>> MicroDevice::time(int samples, const std::function<Status()> &enqueue) const {
  std::vector<double> milliseconds;
  for (int i = 0; i < kWarmUps + samples; ++i) {
    NSA_ASSIGN_OR_RETURN(double sample, device->time(enqueue));
    if (i >= kWarmUps)
      milliseconds.push_back(sample);
  }
  return milliseconds;
}

Result<std::vector<double>>
MicroDevice::clocks(int samples, const tools::Buffer &buffer, size_t count, const std::function<Status()> &enqueue,
                    const std::function<double(const std::vector<int64_t> &)> &reduce) const {
  std::vector<double> reduced;
  std::vector<int64_t> numbers(count);
  for (int i = 0; i < kWarmUps + samples; ++i) {
    NSA_RETURN_IF_ERROR(device->fill(buffer.data(), 0, count * sizeof(int64_t)));
    NSA_RETURN_IF_ERROR(enqueue());
    NSA_RETURN_IF_ERROR(device->download(numbers.data(), buffer.data(), count * sizeof(int64_t)));
    if (i < kWarmUps)
      continue;
    // A kernel that did not run, or a block of it, leaves what was filled in.
    if (std::find(numbers.begin(), numbers.end(), 0) != numbers.end())
      return Status::error(ErrorCode::kInternal, "a block did not write its clocks");
    reduced.push_back(reduce(numbers));
  }
  return reduced;
}

} // namespace nsa::bench
