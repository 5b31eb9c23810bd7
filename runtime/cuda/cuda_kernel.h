// A cubin that is loaded into the device's primary context.
// Ownership: a kernel borrows the context, which must outlive the kernel.
// Thread-safety: immutable.
#pragma once

#include "runtime/cuda/context.h"
#include "runtime/cuda/device_info.h"
#include "runtime/device/device.h"

namespace nsa::cuda {

class CudaKernel final : public Kernel {
public:
  // Loads the cubin, finds its entry and sets the entry's limits of shared memory and of clusters, so that the first
  // launch takes no longer than later ones.
  static Result<std::unique_ptr<Kernel>> load(const PrimaryContext &context, const DeviceInfo &device,
                                              const Manifest &manifest, std::span<const std::byte> cubin);
  ~CudaKernel() override;

  Status launch(const uint64_t *slots, const int32_t (&grid)[3], void *workspace, void *stream) const override;
  size_t workspaceBytes() const override { return 0; }
  Status writeMap(const TensorMapShape &shape, uint64_t *slots) const override;
  std::map<std::string, std::string> evidence() const override;

private:
  explicit CudaKernel(const PrimaryContext &context) : context(context) {}
  // Allows clusters that not every GPU has. Returns an error if the device cannot run one of this many blocks.
  Status checkCluster(int64_t cluster, const DeviceInfo &device) const;

  const PrimaryContext &context;
  Module module = nullptr;
  Function function = nullptr;
  unsigned threads = 1;
  unsigned sharedBytes = 0;
  int registers = 0;
  int localBytes = 0;
};

} // namespace nsa::cuda
