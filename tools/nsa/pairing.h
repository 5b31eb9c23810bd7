// Finds incompatible versions on this machine: of the GPU driver, NVRTC, the runtime library, the compiler library and
// the stored GPU kernels. `nsa doctor` reports incompatible versions and missing components.
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

namespace nsa::tools {

struct PairingFacts {
  int driverVersion = 0;                         // 12040 means 12.4; 0: no driver
  std::string target;                            // of the GPU; "" without one
  std::string nvrtcVersion;                      // "13.0"; "" where none was found
  std::string libraryRevision, compilerRevision; // "" where there is no compiler library
  struct Stored {
    std::string target, nvrtcVersion; // of a GPU kernel in the cache or a pack
  };
  std::vector<Stored> stored;
};

struct PairingFault {
  std::string text;
  std::string advice;
};

// Returns all faults. Empty: everything fits together.
std::vector<PairingFault> findPairingFaults(const PairingFacts &facts);

} // namespace nsa::tools
