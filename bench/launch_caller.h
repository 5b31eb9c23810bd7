// The tensors and the stream of one thread of nsa_bench_launch, and two ways to launch a kernel on these tensors:
// nsa_run and a bare launch. The tensors hold one query and one key.
// Ownership: a LaunchCaller owns its tensors, its stream and the launch arguments.
// Thread-safety: only one thread at a time may use a LaunchCaller.
#pragma once

#include "bench/bare_launch.h"
#include "bench/launch_request.h"
#include "tools/support/accelerator.h"
#include "tools/support/engine.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace nsa::bench {

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
