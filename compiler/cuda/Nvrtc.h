// Loads NVRTC, NVIDIA's run-time compiler, with dlopen. NVRTC compiles CUDA C++ text to a cubin or PTX. Each library
// file of NVRTC is opened at most once per process and never closed. The search for NVRTC reads no environment
// variable; an error lists the file names that were tried. A library file of NVRTC is not opened if other users own it
// or may write to it (runtime/base/trust.h). The owner and the permissions of a library file are checked even if the
// caller named the file, because the name may come from a configuration that is older than the present permissions.
// Thread-safety: `open` and `compile` may be called from many threads at once.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

struct NvrtcSearch {
  std::string path;          // the library's file, or a name for the dynamic linker; empty: search
  int32_t driverVersion = 0; // 12040 means 12.4; 0: no driver, so any major version will do
};

struct NvrtcOutput {
  std::vector<char> bytes; // cubin, or PTX without its terminating NUL
  std::string entry;       // the kernel's symbol
  // The numbers that ptxas reports for the compiled kernel: registers, spill_bytes (stores and loads), stack_bytes,
  // static_shared.
  std::map<std::string, std::string> resources;
};

class Nvrtc {
public:
  enum class Output { kCubin, kPtx };

  // Opens the first file of candidates() that is an NVRTC library. The error is kUnavailable if no file is an NVRTC
  // library, or if the driver is too old for NVRTC or for the code that NVRTC makes. If no file is an NVRTC library,
  // the error gives the reason for each file.
  static Result<const Nvrtc *> open(const NvrtcSearch &search);

  // The version of NVRTC, such as "13.0". A kernel stores the version of NVRTC in its manifest, and the kernel's
  // content key depends on the version.
  const std::string &version() const { return versionText; }
  // The compile options for one architecture ("sm_90a"). A kernel stores its compile options in its manifest, and the
  // kernel's content key depends on them.
  static std::vector<std::string> options(std::string_view arch);

  // Compiles CUDA C++ text that has no #include lines. `name` is the name of the source in NVRTC's messages.
  // `residentBlocks` is NSA_RESIDENT_BLOCKS of the text (templates/device/types.cuh); 0 leaves it undefined.
  Result<NvrtcOutput> compile(const std::string &source, const std::string &name, std::string_view arch, Output output,
                              int64_t residentBlocks = 0) const;

  // Returns the file names under which `open` looks for NVRTC, in the order in which they are tried. The function
  // candidates() is public because a test and `nsa doctor` use it.
  static std::vector<std::string> candidates(const NvrtcSearch &search);

private:
  Nvrtc() = default;
  // Opens one file. If the file is not an NVRTC library, `load` returns null and sets `reason`.
  static const Nvrtc *load(const std::string &path, std::string &reason);
  Status checkArch(std::string_view arch) const;

  struct Functions;
  const Functions *functions = nullptr;
  std::string versionText;
  int major = 0;
  int minor = 0;
  std::vector<int> archs;
};

// Returns the numbers in the report that ptxas prints for one kernel (--ptxas-options=-v). The function
// parsePtxasReport ignores lines of the report that it does not know.
std::map<std::string, std::string> parsePtxasReport(std::string_view log);

} // namespace nsa
