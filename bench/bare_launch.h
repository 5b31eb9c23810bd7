// Makes by hand the kernel launch that is the last step of nsa_run: the same kernel, grid and arguments, through the
// driver's cuLaunchKernelEx on a GPU and through the worker pool on the CPU. The time that nsa_run takes beyond the
// bare launch is the library's overhead.
// LaunchRequest and LaunchCaller are the call of nsa_run that is measured beside it.
// Ownership: a BareLaunch owns the loaded kernel.
// Thread-safety: many threads may call `launch` at once, each with its own arguments and, on a GPU, inside a
// ContextScope of `context`.
#pragma once

#include "cache/kernel_store.h"
#include "runtime/cpu/cpu_image.h"
#include "runtime/cpu/worker_pool.h"
#include "runtime/cuda/context.h"
#include "runtime/device/loaded_kernel.h"
#include "runtime/engine/call/call.h"
#include "tools/support/accelerator.h"
#include "tools/support/engine.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nsa::bench {

struct LaunchRequest {
  Spec spec;
  Maxima maxima;
};

struct LaunchArguments {
  LoadedKernel::Slots slots;
  int32_t grid[3];
};

class BareLaunch {
public:
  static Result<std::unique_ptr<BareLaunch>> make(const std::string &device, const StoredKernel &kernel);
  ~BareLaunch();

  // Makes the kernel arguments that nsa_run would pass for the tensors in `bindings`, except for the status word.
  Status prepare(const CallRules &rules, const Bindings &bindings, LaunchArguments &arguments) const;
  Status launch(const LaunchArguments &arguments, void *workspace, void *stream) const;
  const cuda::PrimaryContext *context() const { return primary ? &*primary : nullptr; } // nullptr: the CPU

private:
  BareLaunch() = default;
  Status loadOnGpu(const Manifest &manifest, std::span<const std::byte> cubin);

  std::unique_ptr<Device> device;
  std::shared_ptr<const LoadedKernel> kernel; // fills the arguments
  std::optional<cuda::PrimaryContext> primary;
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  unsigned threads = 1, sharedBytes = 0;
  std::unique_ptr<cpu::WorkerPool> pool;
  std::unique_ptr<cpu::CpuImage> image;
};

// The tensors and the stream of one thread, and two ways to launch a kernel on these tensors: nsa_run and a bare
// launch. The tensors hold one query and one key. A LaunchCaller owns its tensors, its stream and the launch arguments,
// and only one thread at a time may use it.
class LaunchCaller {
public:
  // `plan` must be a plan of `request`.
  static Result<std::unique_ptr<LaunchCaller>> make(const std::string &device, const BareLaunch &bare,
                                                    const LaunchRequest &request, nsa_plan *plan);

  Status bareLaunches(const BareLaunch &bare, int calls) const;
  Status runs(const nsa_plan *plan, int calls) const;
  Status synchronize() const { return accelerator->synchronize(); }

private:
  std::unique_ptr<tools::Accelerator> accelerator;
  std::vector<tools::Buffer> buffers;
  std::array<nsa_tensor, 4> tensors;
  std::array<nsa_binding, 4> bindings;
  size_t count = 0;
  tools::Buffer workspace;
  LaunchArguments arguments;
};

} // namespace nsa::bench
