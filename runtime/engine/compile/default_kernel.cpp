#include "runtime/engine/compile/default_kernel.h"

#include "runtime/base/manifest.h"

#include <map>
#include <string>
#include <utility>

namespace nsa {

namespace {

// After so many failures of one template its other configurations are not tried.
constexpr int kMostFailures = 3;

} // namespace

Status makeDefaultKernel(const CompilerLibrary &library, CompileRequest request,
                         const std::vector<Candidate> &candidates, const DefaultKernelCallbacks &callbacks) {
  Status firstFailure;
  std::map<std::string, int> failures; // by template
  for (const Candidate &candidate : candidates) {
    if (failures[candidate.templateName] == kMostFailures)
      continue;
    bool isHopeless = false; // as without NVRTC: no other one compiles either
    auto attempt = [&]() -> Status {
      NSA_ASSIGN_OR_RETURN(auto config, parseValues(candidate.config));
      request.templateName = candidate.templateName;
      request.config = std::move(config);
      Result<CompiledKernel> kernel = library.compile(request);
      isHopeless = kernel.status().code() == ErrorCode::kUnavailable;
      return kernel ? callbacks.accept(request, *kernel) : kernel.status();
    };
    Status status = attempt();
    if (status.isOk())
      return status;
    ++failures[candidate.templateName];
    if (callbacks.refused)
      callbacks.refused(candidate, status);
    if (firstFailure.isOk())
      firstFailure = std::move(status);
    if (isHopeless)
      break;
  }
  return firstFailure;
}

} // namespace nsa
