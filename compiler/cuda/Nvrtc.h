// NVRTC, NVIDIA's run-time compiler, opened by name: it turns CUDA C++ text into a cubin or PTX. A library is opened
// once per process and never closed. Nothing is read from the environment; an error lists the names that were tried. A
// file that other users may write or own is not opened (runtime/base/trust.h), even if the caller named it: the name
// may come from a configuration that was written when the folder was still safe.
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
  // The numbers that ptxas reports for the kernel: registers, spill_bytes, stack_bytes, static_shared.
  std::map<std::string, std::string> resources;
};

class Nvrtc {
public:
  enum class Output { kCubin, kPtx };

  // Opens the first candidate that is NVRTC. kUnavailable if there is none (the error lists each candidate with its
  // reason), or if the driver is too old for NVRTC or for the code that it makes.
  static Result<const Nvrtc *> open(const NvrtcSearch &search);

  // The version, such as "13.0". It is stored as evidence and is part of the content key.
  const std::string &version() const { return versionText; }
  // The compile options for one architecture ("sm_90a"). They are stored as evidence and are part of the content key.
  static std::vector<std::string> options(std::string_view arch);

  // Compiles a source that includes no file. `name` is the name of the source in messages.
  Result<NvrtcOutput> compile(const std::string &source, const std::string &name, std::string_view arch,
                              Output output) const;

  // The libraries that `open` tries, in their order. Public for the test and for `nsa doctor`.
  static std::vector<std::string> candidates(const NvrtcSearch &search);

private:
  Nvrtc() = default;
  // Opens one file. Null with a reason if the file is not NVRTC.
  static const Nvrtc *load(const std::string &path, std::string &reason);
  Status checkArch(std::string_view arch) const;

  struct Functions;
  const Functions *functions = nullptr;
  std::string versionText;
  int major = 0;
  int minor = 0;
  std::vector<int> archs;
};

// Reads the report of ptxas on one kernel (--ptxas-options=-v). Unknown lines are skipped.
std::map<std::string, std::string> parsePtxasReport(std::string_view log);

} // namespace nsa
