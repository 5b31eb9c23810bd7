// CUDA graphs, whose functions are looked up in the driver that the runtime has opened. Work is captured once and
// launched again and again.
// Ownership: a CudaGraph owns its graph; the stream and all that was captured must outlive it.
// Thread-safety: one thread at a time may use a CudaGraph, inside a ContextScope of the stream's CUDA context.
#pragma once

#include "runtime/cuda/driver.h"

#include <functional>

namespace nsa::tools {

class CudaGraph {
public:
  // Captures the work that `enqueue` puts on the stream. The capture uses CUDA's global capture mode: until the capture
  // ends, a call that is forbidden during a capture fails in every thread.
  static Result<CudaGraph> capture(const cuda::Driver &driver, cuda::Stream stream,
                                   const std::function<Status()> &enqueue);
  CudaGraph(CudaGraph &&other) noexcept;
  CudaGraph &operator=(CudaGraph &&) = delete;
  ~CudaGraph();

  Status launch(cuda::Stream stream) const;

private:
  struct Api;
  CudaGraph(const cuda::Driver &driver, const Api &api) : driver(&driver), api(&api) {}

  const cuda::Driver *driver;
  const Api *api;
  void *graph = nullptr, *instance = nullptr;
};

} // namespace nsa::tools
