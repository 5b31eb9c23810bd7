// A GPU through the CUDA driver API, which is loaded when the program runs: it builds where there is no CUDA toolkit,
// and starts where there is no driver.
#include "device.h"

#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>

namespace example {
namespace {

using Result = int;
using DevicePointer = unsigned long long;
constexpr unsigned kStreamNonBlocking = 1;
constexpr int kCaptureThreadLocal = 1; // other threads may do as they like while this one captures

struct Driver {
  Result (*init)(unsigned flags);
  Result (*errorString)(Result result, const char **text);
  Result (*deviceGet)(int *device, int ordinal);
  Result (*contextRetain)(void **context, int device);
  Result (*contextRelease)(int device);
  Result (*contextSetCurrent)(void *context);
  Result (*memoryAllocate)(DevicePointer *memory, std::size_t bytes);
  Result (*memoryFree)(DevicePointer memory);
  Result (*copyToDevice)(DevicePointer to, const void *from, std::size_t bytes, void *stream);
  Result (*copyToHost)(void *to, DevicePointer from, std::size_t bytes, void *stream);
  Result (*memorySet)(DevicePointer to, unsigned char value, std::size_t bytes, void *stream);
  Result (*streamCreate)(void **stream, unsigned flags);
  Result (*streamDestroy)(void *stream);
  Result (*streamSynchronize)(void *stream);
  Result (*beginCapture)(void *stream, int mode);
  Result (*endCapture)(void *stream, void **graph);
  Result (*graphInstantiate)(void **executable, void *graph, unsigned long long flags);
  Result (*graphLaunch)(void *executable, void *stream);
  Result (*executableDestroy)(void *executable);
  Result (*graphDestroy)(void *graph);

  Driver() {
    // Never closed: the runtime library has it open too.
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      throw std::runtime_error(std::string("no CUDA driver: ") + dlerror());
    auto find = [&](auto &entry, const char *name) {
      entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(dlsym(library, name));
      if (entry == nullptr)
        throw std::runtime_error(std::string("the CUDA driver has no ") + name + ": it is too old");
    };
    find(errorString, "cuGetErrorString");
    find(init, "cuInit");
    find(deviceGet, "cuDeviceGet");
    find(contextRetain, "cuDevicePrimaryCtxRetain");
    find(contextRelease, "cuDevicePrimaryCtxRelease_v2");
    find(contextSetCurrent, "cuCtxSetCurrent");
    find(memoryAllocate, "cuMemAlloc_v2");
    find(memoryFree, "cuMemFree_v2");
    find(copyToDevice, "cuMemcpyHtoDAsync_v2");
    find(copyToHost, "cuMemcpyDtoHAsync_v2");
    find(memorySet, "cuMemsetD8Async");
    find(streamCreate, "cuStreamCreate");
    find(streamDestroy, "cuStreamDestroy_v2");
    find(streamSynchronize, "cuStreamSynchronize");
    find(beginCapture, "cuStreamBeginCapture_v2");
    find(endCapture, "cuStreamEndCapture");
    find(graphInstantiate, "cuGraphInstantiateWithFlags");
    find(graphLaunch, "cuGraphLaunch");
    find(executableDestroy, "cuGraphExecDestroy");
    find(graphDestroy, "cuGraphDestroy");
    check(init(0), "cuInit");
  }

  void check(Result result, const char *call) const {
    if (result == 0)
      return;
    const char *text = nullptr;
    errorString(result, &text);
    throw std::runtime_error(std::string(call) + ": " + (text != nullptr ? text : "unknown error"));
  }
};

DevicePointer address(const void *memory) { return reinterpret_cast<std::uintptr_t>(memory); }

// A captured piece of work, ready to be launched.
class Graph {
public:
  Graph(const Driver &driver, void *stream, const std::function<void()> &enqueue) : driver(driver), stream(stream) {
    driver.check(driver.beginCapture(stream, kCaptureThreadLocal), "cuStreamBeginCapture");
    void *graph = nullptr;
    try {
      enqueue();
    } catch (...) {
      // The stream leaves the capture whatever happened.
      if (driver.endCapture(stream, &graph) == 0 && graph != nullptr)
        driver.graphDestroy(graph);
      throw;
    }
    driver.check(driver.endCapture(stream, &graph), "cuStreamEndCapture");
    const Result made = driver.graphInstantiate(&executable, graph, 0);
    driver.graphDestroy(graph);
    driver.check(made, "cuGraphInstantiate");
  }
  Graph(const Graph &) = delete;
  ~Graph() { driver.executableDestroy(executable); }

  void launch() const { driver.check(driver.graphLaunch(executable, stream), "cuGraphLaunch"); }

private:
  const Driver &driver;
  void *stream;
  void *executable = nullptr;
};

class CudaDevice final : public Device {
public:
  // The library uses the primary context too, so tensors and streams of it are the library's.
  explicit CudaDevice(int ordinal) {
    driver.check(driver.deviceGet(&device, ordinal), "cuDeviceGet");
    void *context = nullptr;
    driver.check(driver.contextRetain(&context, device), "cuDevicePrimaryCtxRetain");
    driver.check(driver.contextSetCurrent(context), "cuCtxSetCurrent");
    driver.check(driver.streamCreate(&ownStream, kStreamNonBlocking), "cuStreamCreate");
  }
  ~CudaDevice() override {
    driver.streamDestroy(ownStream);
    driver.contextRelease(device);
  }

  void *stream() const override { return ownStream; }
  void upload(void *to, const void *from, std::size_t bytes) override {
    if (bytes == 0)
      return;
    driver.check(driver.copyToDevice(address(to), from, bytes, ownStream), "cuMemcpyHtoDAsync");
    driver.check(driver.streamSynchronize(ownStream), "cuStreamSynchronize");
  }
  void download(void *to, const void *from, std::size_t bytes) override {
    if (bytes == 0)
      return;
    driver.check(driver.copyToHost(to, address(from), bytes, ownStream), "cuMemcpyDtoHAsync");
    driver.check(driver.streamSynchronize(ownStream), "cuStreamSynchronize");
  }
  void fill(void *to, unsigned char value, std::size_t bytes) override {
    if (bytes != 0)
      driver.check(driver.memorySet(address(to), value, bytes, ownStream), "cuMemsetD8Async");
  }
  std::function<void()> repeatable(std::function<void()> enqueue) override {
    auto graph = std::make_shared<Graph>(driver, ownStream, enqueue);
    return [graph] { graph->launch(); };
  }

private:
  void *allocate(std::size_t bytes) override {
    DevicePointer memory = 0;
    driver.check(driver.memoryAllocate(&memory, bytes), "cuMemAlloc");
    return reinterpret_cast<void *>(static_cast<std::uintptr_t>(memory));
  }
  void release(void *memory) override { driver.memoryFree(address(memory)); }

  const Driver driver;
  int device = 0;
  void *ownStream = nullptr;
};

} // namespace

std::unique_ptr<Device> openCudaDevice(int ordinal) { return std::make_unique<CudaDevice>(ordinal); }

} // namespace example
