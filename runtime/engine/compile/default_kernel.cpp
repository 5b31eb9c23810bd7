#include "runtime/engine/compile/default_kernel.h"

#include "runtime/base/manifest.h"
#include "runtime/base/text.h"

#include <algorithm>
#include <utility>

namespace nsa {

namespace {

// After so many failures of one template its other configurations are not tried.
constexpr size_t kMostFailures = 3;

} // namespace

Status makeDefaultKernel(const CompilerLibrary &library, CompileRequest request,
                         const std::vector<Candidate> &candidates,
                         const std::function<Status(const CompileRequest &request, CompiledKernel &kernel)> &accept,
                         const std::function<void(const Candidate &candidate, const Status &why)> &refused) {
  Status firstFailure;
  std::map<std::string, std::vector<std::string>> failures; // their texts, by template
  for (const Candidate &candidate : candidates) {
    std::vector<std::string> &texts = failures[candidate.templateName];
    if (texts.size() == kMostFailures)
      continue;
    bool isHopeless = false; // as without NVRTC: no other one compiles either
    auto attempt = [&]() -> Status {
      request.templateName = candidate.templateName;
      NSA_ASSIGN_OR_RETURN(request.config, parseValues(candidate.config));
      Result<CompiledKernel> kernel = library.compile(request);
      isHopeless = kernel.status().code() == ErrorCode::kUnavailable;
      return kernel ? accept(request, *kernel) : kernel.status();
    };
    Status status = attempt();
    if (status.isOk())
      return status;
    const std::string text = status.toString();
    if (refused && std::ranges::find(texts, text) == texts.end())
      refused(candidate, status);
    texts.push_back(text);
    if (firstFailure.isOk())
      firstFailure = std::move(status);
    if (isHopeless)
      break;
  }
  return firstFailure;
}

Result<std::vector<Candidate>> listReference(const CompilerLibrary &library, const CompileRequest &request,
                                             const std::map<std::string, std::string> &choices) {
  NSA_ASSIGN_OR_RETURN(const std::vector<Candidate> listed, library.list(request));
  std::vector<Candidate> found;
  for (const Candidate &candidate : listed) {
    NSA_ASSIGN_OR_RETURN(const auto config, parseValues(candidate.config));
    if (std::ranges::includes(config, choices))
      found.push_back(candidate);
  }
  if (!found.empty())
    return found;
  return Status::error(
      ErrorCode::kUnsupported,
      "no configuration that is admitted here has " +
          joined(choices, ", ", [](const auto &choice) { return choice.first + " = " + choice.second; }),
      "give the clause 'reference' choices that all 'require' lines admit");
}

} // namespace nsa
