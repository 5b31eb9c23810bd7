#include "tools/support/cuda_graph.h"

#include <dlfcn.h>
#include <utility>

namespace nsa::tools {

struct CudaGraph::Api {
  static constexpr int kCaptureGlobal = 0; // CU_STREAM_CAPTURE_MODE_GLOBAL

  cuda::DriverResult (*beginCapture)(cuda::Stream stream, int mode) = nullptr;
  cuda::DriverResult (*endCapture)(cuda::Stream stream, void **graph) = nullptr;
  cuda::DriverResult (*instantiate)(void **instance, void *graph, unsigned long long flags) = nullptr;
  cuda::DriverResult (*launch)(void *instance, cuda::Stream stream) = nullptr;
  cuda::DriverResult (*destroyInstance)(void *instance) = nullptr;
  cuda::DriverResult (*destroyGraph)(void *graph) = nullptr;

  static const Api *open() {
    static const Api *const opened = []() -> const Api * {
      static Api api;
      void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
      auto find = [&](auto &entry, const char *name) {
        entry = library ? reinterpret_cast<std::remove_reference_t<decltype(entry)>>(dlsym(library, name)) : nullptr;
        return entry != nullptr;
      };
      const bool all = find(api.beginCapture, "cuStreamBeginCapture_v2") &&
                       find(api.endCapture, "cuStreamEndCapture") &&
                       find(api.instantiate, "cuGraphInstantiateWithFlags") && find(api.launch, "cuGraphLaunch") &&
                       find(api.destroyInstance, "cuGraphExecDestroy") && find(api.destroyGraph, "cuGraphDestroy");
      return all ? &api : nullptr;
    }();
    return opened;
  }
};

CudaGraph::CudaGraph(CudaGraph &&other) noexcept
    : driver(other.driver), api(other.api), graph(std::exchange(other.graph, nullptr)),
      instance(std::exchange(other.instance, nullptr)) {}

CudaGraph::~CudaGraph() {
  if (instance)
    api->destroyInstance(instance);
  if (graph)
    api->destroyGraph(graph);
}

Result<CudaGraph> CudaGraph::capture(const cuda::Driver &driver, cuda::Stream stream,
                                     const std::function<Status()> &enqueue) {
  const Api *api = Api::open();
  if (!api)
    return Status::error(ErrorCode::kUnavailable, "this driver has no graphs", "update the driver to 12.0 or newer");
  CudaGraph result(driver, *api);
  NSA_RETURN_IF_ERROR(driver.check(api->beginCapture(stream, Api::kCaptureGlobal), "cuStreamBeginCapture"));
  const Status enqueued = enqueue();
  // The stream must leave the capture whatever happened.
  const Status ended = driver.check(api->endCapture(stream, &result.graph), "cuStreamEndCapture");
  NSA_RETURN_IF_ERROR(enqueued);
  NSA_RETURN_IF_ERROR(ended);
  NSA_RETURN_IF_ERROR(driver.check(api->instantiate(&result.instance, result.graph, 0), "cuGraphInstantiateWithFlags"));
  return result;
}

Status CudaGraph::launch(cuda::Stream stream) const {
  return driver->check(api->launch(instance, stream), "cuGraphLaunch");
}

} // namespace nsa::tools
