#include "tools/support/accelerator.h"

#include "runtime/base/device_name.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/device_info.h"
#include "runtime/cuda/driver.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <utility>
#include <vector>

namespace nsa::tools {
namespace {

constexpr size_t kAlignment = 256;

constexpr unsigned char kGuard = 0xa5; // no poison, and no zero

std::byte *bytesOf(void *pointer) { return static_cast<std::byte *>(pointer); }

class CpuAccelerator final : public Accelerator {
public:
  bool isCuda() const override { return false; }
  void *stream() const override { return nullptr; }
  Status upload(void *to, const void *from, size_t bytes) override { return copy(to, from, bytes); }
  Status download(void *to, const void *from, size_t bytes) override { return copy(to, from, bytes); }
  Status fill(void *to, unsigned char value, size_t bytes) override {
    if (bytes)
      std::memset(to, value, bytes);
    return Status::ok();
  }
  Status synchronize() override { return Status::ok(); }
  Result<double> time(const std::function<Status()> &enqueue) override {
    const auto start = std::chrono::steady_clock::now();
    NSA_RETURN_IF_ERROR(enqueue());
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

  Result<Recording> record(const std::function<Status()> &enqueue) override { return enqueue; }
  Result<Recording> recordEmptyKernels(int) override { return Recording(Status::ok); }

private:
  Status copy(void *to, const void *from, size_t bytes) {
    if (bytes)
      std::memcpy(to, from, bytes);
    return Status::ok();
  }
  Result<void *> allocateBytes(size_t bytes) override {
    void *pointer = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    if (!pointer)
      return Status::error(ErrorCode::kOutOfMemory, "no host memory for " + std::to_string(bytes) + " bytes");
    return pointer;
  }
  void release(void *pointer) override { std::free(pointer); }
};

// The driver's functions for graphs. No launch of the runtime needs them, so its own list of functions lacks them.
struct GraphApi {
  static constexpr int kCaptureGlobal = 0; // CU_STREAM_CAPTURE_MODE_GLOBAL

  cuda::DriverResult (*beginCapture)(cuda::Stream stream, int mode) = nullptr;
  cuda::DriverResult (*endCapture)(cuda::Stream stream, void **graph) = nullptr;
  cuda::DriverResult (*instantiate)(void **instance, void *graph, unsigned long long flags) = nullptr;
  cuda::DriverResult (*launch)(void *instance, cuda::Stream stream) = nullptr;
  cuda::DriverResult (*destroyInstance)(void *instance) = nullptr;
  cuda::DriverResult (*destroyGraph)(void *graph) = nullptr;

  // Null where the driver lacks one of them.
  static const GraphApi *open() {
    static GraphApi api;
    static const bool isWhole = [] {
      void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
      auto find = [&](auto &entry, const char *name) {
        entry = library ? reinterpret_cast<std::remove_reference_t<decltype(entry)>>(dlsym(library, name)) : nullptr;
        return entry != nullptr;
      };
      return find(api.beginCapture, "cuStreamBeginCapture_v2") && find(api.endCapture, "cuStreamEndCapture") &&
             find(api.instantiate, "cuGraphInstantiateWithFlags") && find(api.launch, "cuGraphLaunch") &&
             find(api.destroyInstance, "cuGraphExecDestroy") && find(api.destroyGraph, "cuGraphDestroy");
    }();
    return isWhole ? &api : nullptr;
  }
};

// Work that is captured once and launched again and again. The stream and all that was captured must outlive it.
class CudaGraph {
public:
  CudaGraph(const cuda::Driver &driver, const GraphApi &api) : driver(driver), api(api) {}
  CudaGraph(const CudaGraph &) = delete;
  CudaGraph &operator=(const CudaGraph &) = delete;
  ~CudaGraph() {
    if (instance)
      api.destroyInstance(instance);
    if (graph)
      api.destroyGraph(graph);
  }

  // In CUDA's global capture mode: until the capture ends, a call that is forbidden during a capture fails in every
  // thread.
  Status capture(cuda::Stream stream, const std::function<Status()> &enqueue) {
    NSA_RETURN_IF_ERROR(driver.check(api.beginCapture(stream, GraphApi::kCaptureGlobal), "cuStreamBeginCapture"));
    const Status enqueued = enqueue();
    // The stream must leave the capture whatever happened.
    const Status ended = driver.check(api.endCapture(stream, &graph), "cuStreamEndCapture");
    NSA_RETURN_IF_ERROR(enqueued);
    NSA_RETURN_IF_ERROR(ended);
    return driver.check(api.instantiate(&instance, graph, 0), "cuGraphInstantiateWithFlags");
  }
  Status launch(cuda::Stream stream) const { return driver.check(api.launch(instance, stream), "cuGraphLaunch"); }

private:
  const cuda::Driver &driver;
  const GraphApi &api;
  void *graph = nullptr, *instance = nullptr;
};

class CudaAccelerator final : public Accelerator {
public:
  static Result<std::unique_ptr<Accelerator>> open(int ordinal) {
    NSA_ASSIGN_OR_RETURN(const cuda::Driver *driver, cuda::Driver::get());
    // Gives the error that lists the devices when the ordinal is out of range.
    if (Result<cuda::DeviceInfo> info = cuda::readDeviceInfo(*driver, ordinal); !info)
      return info.status();
    cuda::DeviceId device = 0;
    NSA_CUDA_CALL(*driver, deviceGet, (&device, ordinal));
    auto accelerator = std::make_unique<CudaAccelerator>(*driver, device);
    NSA_RETURN_IF_ERROR(accelerator->context.retain());
    cuda::ContextScope scope(accelerator->context);
    NSA_RETURN_IF_ERROR(scope.status());
    NSA_CUDA_CALL(*driver, streamCreate, (&accelerator->ownStream, cuda::kStreamNonBlocking));
    NSA_CUDA_CALL(*driver, eventCreate, (&accelerator->before, cuda::kEventDefault));
    NSA_CUDA_CALL(*driver, eventCreate, (&accelerator->after, cuda::kEventDefault));
    return std::unique_ptr<Accelerator>(std::move(accelerator));
  }

  CudaAccelerator(const cuda::Driver &driver, cuda::DeviceId device) : driver(driver), context(driver, device) {}
  ~CudaAccelerator() override {
    cuda::ContextScope scope(context);
    if (emptyModule)
      driver.moduleUnload(emptyModule);
    if (after)
      driver.eventDestroy(after);
    if (before)
      driver.eventDestroy(before);
    if (ownStream)
      driver.streamDestroy(ownStream);
  }

  bool isCuda() const override { return true; }
  void *stream() const override { return ownStream; }

  Status upload(void *to, const void *from, size_t bytes) override {
    if (!bytes)
      return Status::ok();
    cuda::ContextScope scope(context);
    NSA_RETURN_IF_ERROR(scope.status());
    NSA_CUDA_CALL(driver, memcpyHtoDAsync, (address(to), from, bytes, ownStream));
    NSA_CUDA_CALL(driver, streamSynchronize, (ownStream)); // the source may go away
    return Status::ok();
  }

  Status download(void *to, const void *from, size_t bytes) override {
    if (!bytes)
      return Status::ok();
    cuda::ContextScope scope(context);
    NSA_RETURN_IF_ERROR(scope.status());
    NSA_CUDA_CALL(driver, memcpyDtoHAsync, (to, address(from), bytes, ownStream));
    NSA_CUDA_CALL(driver, streamSynchronize, (ownStream));
    return Status::ok();
  }

  Status fill(void *to, unsigned char value, size_t bytes) override {
    if (!bytes)
      return Status::ok();
    cuda::ContextScope scope(context);
    NSA_RETURN_IF_ERROR(scope.status());
    NSA_CUDA_CALL(driver, memsetD8Async, (address(to), value, bytes, ownStream));
    return Status::ok();
  }

  Status synchronize() override {
    cuda::ContextScope scope(context);
    NSA_RETURN_IF_ERROR(scope.status());
    NSA_CUDA_CALL(driver, streamSynchronize, (ownStream));
    return Status::ok();
  }

  Result<double> time(const std::function<Status()> &enqueue) override {
    cuda::ContextScope scope(context);
    NSA_RETURN_IF_ERROR(scope.status());
    NSA_CUDA_CALL(driver, eventRecord, (before, ownStream));
    NSA_RETURN_IF_ERROR(enqueue());
    NSA_CUDA_CALL(driver, eventRecord, (after, ownStream));
    NSA_CUDA_CALL(driver, eventSynchronize, (after));
    float milliseconds = 0;
    NSA_CUDA_CALL(driver, eventElapsedTime, (&milliseconds, before, after));
    return static_cast<double>(milliseconds);
  }

  Result<Recording> record(const std::function<Status()> &enqueue) override {
    cuda::ContextScope scope(context);
    NSA_RETURN_IF_ERROR(scope.status());
    const GraphApi *api = GraphApi::open();
    if (!api)
      return Status::error(ErrorCode::kUnavailable, "this driver has no graphs", "update the driver to 12.0 or newer");
    const auto graph = std::make_shared<CudaGraph>(driver, *api);
    NSA_RETURN_IF_ERROR(graph->capture(ownStream, enqueue));
    return Recording([this, graph]() -> Status {
      cuda::ContextScope scope(context);
      NSA_RETURN_IF_ERROR(scope.status());
      return graph->launch(ownStream);
    });
  }

  Result<Recording> recordEmptyKernels(int count) override {
    cuda::ContextScope scope(context);
    NSA_RETURN_IF_ERROR(scope.status());
    if (!emptyKernel) {
      static constexpr char kPtx[] =
          ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry empty() { ret; }\n";
      NSA_CUDA_CALL(driver, moduleLoadData, (&emptyModule, kPtx));
      NSA_CUDA_CALL(driver, moduleGetFunction, (&emptyKernel, emptyModule, "empty"));
    }
    return record([&]() -> Status {
      cuda::LaunchConfig config{};
      config.gridX = config.gridY = config.gridZ = config.blockY = config.blockZ = 1;
      config.blockX = 32;
      config.stream = ownStream;
      for (int i = 0; i < count; ++i)
        NSA_CUDA_CALL(driver, launchKernelEx, (&config, emptyKernel, nullptr, nullptr));
      return Status::ok();
    });
  }

private:
  static cuda::DevicePointer address(const void *pointer) { return reinterpret_cast<cuda::DevicePointer>(pointer); }

  Result<void *> allocateBytes(size_t bytes) override {
    cuda::ContextScope scope(context);
    NSA_RETURN_IF_ERROR(scope.status());
    cuda::DevicePointer pointer = 0;
    NSA_CUDA_CALL(driver, memAlloc, (&pointer, bytes)); // aligned to at least 256 bytes
    return reinterpret_cast<void *>(pointer);
  }
  void release(void *pointer) override {
    cuda::ContextScope scope(context);
    driver.memFree(address(pointer));
  }

  const cuda::Driver &driver;
  cuda::PrimaryContext context;
  cuda::Stream ownStream = nullptr;
  cuda::Event before = nullptr, after = nullptr;
  cuda::Module emptyModule = nullptr;
  cuda::Function emptyKernel = nullptr;
};

} // namespace

Buffer::Buffer(Buffer &&other) noexcept
    : owner(std::exchange(other.owner, nullptr)), pointer(std::exchange(other.pointer, nullptr)),
      bytes(std::exchange(other.bytes, 0)) {}

Buffer &Buffer::operator=(Buffer &&other) noexcept {
  std::swap(owner, other.owner);
  std::swap(pointer, other.pointer);
  std::swap(bytes, other.bytes);
  return *this;
}

Buffer::~Buffer() {
  if (pointer)
    owner->release(bytesOf(pointer) - kGuardBytes);
}

Result<Buffer> Accelerator::allocate(size_t bytes) {
  // An empty tensor still gets an address of its own: null means "absent" to the C ABI.
  NSA_ASSIGN_OR_RETURN(void *pointer, allocateBytes((bytes ? bytes : 1) + 2 * kGuardBytes));
  Buffer buffer;
  buffer.owner = this;
  buffer.pointer = bytesOf(pointer) + kGuardBytes;
  buffer.bytes = bytes;
  NSA_RETURN_IF_ERROR(fill(pointer, kGuard, kGuardBytes));
  NSA_RETURN_IF_ERROR(fill(bytesOf(buffer.pointer) + bytes, kGuard, kGuardBytes));
  return buffer;
}

Status Accelerator::checkGuards(const Buffer &buffer, std::string_view name) {
  if (!buffer.pointer)
    return Status::ok();
  const std::pair<const char *, const void *> guards[] = {{"in front of", bytesOf(buffer.pointer) - kGuardBytes},
                                                          {"behind", bytesOf(buffer.pointer) + buffer.bytes}};
  for (const auto &[side, guard] : guards) {
    std::vector<unsigned char> bytes(kGuardBytes);
    NSA_RETURN_IF_ERROR(download(bytes.data(), guard, bytes.size()));
    if (const auto written = std::ranges::count_if(bytes, [](unsigned char byte) { return byte != kGuard; }))
      return Status::error(ErrorCode::kInternal,
                           std::to_string(written) + " of the " + std::to_string(kGuardBytes) + " bytes " + side + " " +
                               std::string(name) + " were written",
                           "a kernel writes outside of its tensors: report it with the spec and the lengths");
  }
  return Status::ok();
}

Result<std::unique_ptr<Accelerator>> Accelerator::open(const std::string &device) {
  NSA_ASSIGN_OR_RETURN(const std::optional<int> ordinal, gpuOrdinal(device));
  if (ordinal)
    return CudaAccelerator::open(*ordinal);
  return std::unique_ptr<Accelerator>(std::make_unique<CpuAccelerator>());
}

} // namespace nsa::tools
