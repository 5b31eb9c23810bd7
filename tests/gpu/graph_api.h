// The part of the CUDA driver that only tests need: stream capture and graphs, by name from the library the
// runtime has opened.
// Thread-safety: immutable.
#pragma once

#include "runtime/cuda/driver_abi.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace nsa::test {

using Graph = struct GraphTag *;
using GraphExec = struct GraphExecTag *;

struct GraphApi {
  // CU_STREAM_CAPTURE_MODE_GLOBAL: any call of any thread that a capture forbids fails, so that one in the launch path
  // shows.
  static constexpr int kCaptureGlobal = 0;

  cuda::DriverResult (*beginCapture)(cuda::Stream stream, int mode) = nullptr;
  cuda::DriverResult (*endCapture)(cuda::Stream stream, Graph *graph) = nullptr;
  cuda::DriverResult (*instantiate)(GraphExec *exec, Graph graph, unsigned long long flags) = nullptr;
  cuda::DriverResult (*launch)(GraphExec exec, cuda::Stream stream) = nullptr;
  cuda::DriverResult (*destroyExec)(GraphExec exec) = nullptr;
  cuda::DriverResult (*destroyGraph)(Graph graph) = nullptr;

  static GraphApi open() {
    GraphApi api;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    auto find = [&](auto &entry, const char *name) {
      entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(dlsym(library, name));
      EXPECT_TRUE(entry) << name;
    };
    find(api.beginCapture, "cuStreamBeginCapture_v2");
    find(api.endCapture, "cuStreamEndCapture");
    find(api.instantiate, "cuGraphInstantiateWithFlags");
    find(api.launch, "cuGraphLaunch");
    find(api.destroyExec, "cuGraphExecDestroy");
    find(api.destroyGraph, "cuGraphDestroy");
    return api;
  }
};

} // namespace nsa::test
