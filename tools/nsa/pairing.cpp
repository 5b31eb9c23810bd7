#include "tools/nsa/pairing.h"

#include "runtime/cuda/driver.h"
#include "runtime/model/targets.h"

#include <charconv>
#include <map>

namespace nsa::tools {
namespace {

// "13.0": 13. 0 when it is no version.
int majorOf(const std::string &version) {
  int major = 0;
  std::from_chars(version.data(), version.data() + version.size(), major);
  return major;
}

} // namespace

std::vector<PairingFault> findPairingFaults(const PairingFacts &facts) {
  std::vector<PairingFault> faults;
  const int driverMajor = facts.driverVersion / 1000;
  if (driverMajor != 0 && majorOf(facts.nvrtcVersion) > driverMajor)
    faults.push_back(
        {"NVRTC " + facts.nvrtcVersion + " makes code that a driver for CUDA " +
             cuda::versionText(facts.driverVersion) + " may not load",
         "install NVRTC " + std::to_string(driverMajor) + ".x and name it with NSA_NVRTC, or update the driver"});
  if (!facts.compilerRevision.empty() && facts.compilerRevision != facts.libraryRevision)
    faults.push_back({"libnsa_compiler.so (" + facts.compilerRevision + ") is not of the build of libnsa.so (" +
                          facts.libraryRevision + "): stored kernels of either are made again by the other",
                      "install both libraries from one build"});
  if (facts.target.empty() || facts.stored.empty())
    return faults;
  size_t runnable = 0, tooNew = 0;
  std::map<std::string, size_t> targets;
  for (const PairingFacts::Stored &kernel : facts.stored) {
    ++targets[kernel.target];
    if (!ageOfCode(kernel.target, facts.target))
      continue;
    ++runnable;
    tooNew += driverMajor != 0 && majorOf(kernel.nvrtcVersion) > driverMajor;
  }
  if (runnable == 0) {
    std::string list;
    for (const auto &[target, count] : targets)
      list += (list.empty() ? "" : ", ") + std::to_string(count) + " for " + target;
    faults.push_back({"of the stored GPU kernels none runs on " + facts.target + ": there are " + list,
                      "tune on this machine, or take the pack of its GPU"});
  } else if (tooNew != 0) {
    faults.push_back({std::to_string(tooNew) + " of " + std::to_string(runnable) +
                          " stored kernels were compiled by an NVRTC that is newer than the driver (CUDA " +
                          cuda::versionText(facts.driverVersion) + ")",
                      "update the driver, or compile them again with NVRTC " + std::to_string(driverMajor) + ".x"});
  }
  return faults;
}

} // namespace nsa::tools
