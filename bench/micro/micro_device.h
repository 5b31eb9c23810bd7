// Runs microbenchmarks on a GPU: compiles kernels with NVRTC, launches them with the attributes of Hopper (clusters,
// programmatic dependence), makes tensor maps, and takes times by events and by clocks that kernels read themselves.
// Ownership: kernels and buffers must not outlive their MicroDevice.
// Thread-safety: only one thread at a time may use a MicroDevice.
#pragma once

#include "bench/micro/micro_source.h"
#include "compiler/cuda/Nvrtc.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/device_info.h"
#include "tools/support/accelerator.h"

#include <cstdint>
#include <optional>

namespace nsa::bench {

struct MicroLaunch {
  unsigned blocks = 1, threads = 32, sharedBytes = 0;
  unsigned cluster = 0;      // blocks of a cluster along x; 0: no cluster
  bool programmatic = false; // the kernel may start before its predecessor has ended
};

// A matrix of bf16. Its rows are `rowBytes` apart.
struct MicroMatrix {
  void *data = nullptr;
  uint64_t columns = 0, rows = 0, rowBytes = 0;
};

// The median of the clock cycles of several blocks.
double medianClocks(std::vector<int64_t> clocks);

class MicroDevice {
public:
  // The error is kUnavailable if the machine has no GPU, no NVRTC for its driver, or a GPU that is not sm_90a.
  static Result<std::unique_ptr<MicroDevice>> open(const std::string &name);
  ~MicroDevice();

  const cuda::DeviceInfo &info() const { return *deviceInfo; }
  unsigned multiprocessors() const { return static_cast<unsigned>(deviceInfo->multiprocessors); }
  tools::Accelerator &accelerator() const { return *device; }
  const Nvrtc &compiler() const { return *nvrtc; }

  // Compiles the kernels on all cores and loads them. A kernel that is already loaded is skipped.
  Status load(const std::vector<MicroSource> &sources);
  // How many bytes of registers a loaded kernel spills to memory. A kernel that spills registers gives no valid rate,
  // because the memory accesses of the spills are timed too.
  int spilledBytes(const MicroSource &source) const;

  // Enqueues a loaded kernel `times` times, without any other driver call between the launches. `parameters` point to
  // the kernel's arguments in order.
  Status launch(const MicroSource &source, const MicroLaunch &launch, std::vector<void *> parameters,
                int times = 1) const;
  // Returns how many clusters of a launch the GPU can hold at one time.
  Result<int> activeClusters(const MicroSource &source, const MicroLaunch &launch) const;
  // Makes a tensor map with boxes of `boxColumns` x `boxRows`, swizzled by 128 bytes. The tensor map of a MicroMatrix
  // has four dimensions, like the tensors of attention: columns, rows, and two dimensions of extent 1.
  Result<cuda::TensorMap> tensorMap(const MicroMatrix &matrix, unsigned boxColumns, unsigned boxRows) const;

  // Measures the work that `enqueue` puts on the stream, and returns the milliseconds of each of `samples` runs. Two
  // warm-up runs come first, whose times are not returned.
  Result<std::vector<double>> time(int samples, const std::function<Status()> &enqueue) const;
  // Runs `enqueue` `samples` times and returns the result of each run, after two warm-up runs whose results are not
  // returned. In each run the kernel writes `count` numbers of clock cycles into `clocks`, and `reduce` turns them into
  // the run's result.
  Result<std::vector<double>> clocks(int samples, const tools::Buffer &clocks, size_t count,
                                     const std::function<Status()> &enqueue,
                                     const std::function<double(const std::vector<int64_t> &)> &reduce) const;

private:
  struct Loaded {
    MicroSource source;
    cuda::Module module = nullptr;
    cuda::Function function = nullptr;
    int localBytes = 0;
  };

  MicroDevice() = default;
  const Loaded *find(const MicroSource &source) const;
  Status loadOne(const MicroSource &source, const NvrtcOutput &output);
  // Fills `attributes` and returns a launch configuration that points to them.
  cuda::LaunchConfig configOf(const MicroLaunch &launch, cuda::LaunchAttribute (&attributes)[2]) const;

  std::unique_ptr<tools::Accelerator> device;
  std::optional<cuda::PrimaryContext> context;
  std::optional<cuda::DeviceInfo> deviceInfo;
  const Nvrtc *nvrtc = nullptr;
  std::vector<Loaded> kernels;
};

} // namespace nsa::bench
