// NVRTC, NVIDIA's run-time compiler, opened by name: CUDA C++ text -> cubin or PTX.
// A library is opened once per process and never closed. Nothing of the environment is read; what was tried is in
// the error. A file that others may write or own is not opened (runtime/base/trust.h), also when it was named: the name
// may come from a configuration that was written when the folder was still safe. Thread-safety: `open` and `compile`
// may be called from many threads at once.
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
  int32_t driverVersion = 0; // 12040 = 12.4; 0: no driver, any major will do
};

struct NvrtcOutput {
  std::vector<char> bytes; // cubin, or PTX without its terminating NUL
  std::string entry;       // the kernel's symbol
  // What ptxas said of the kernel: registers, spill_bytes, stack_bytes, static_shared.
  std::map<std::string, std::string> resources;
};

class Nvrtc {
public:
  enum class Output { kCubin, kPtx };

  static Result<const Nvrtc *> open(const NvrtcSearch &search);

  // "13.0": evidence, and part of the content key.
  const std::string &version() const { return versionText; }
  // The options of one architecture ("sm_90a"): evidence, and part of the content key.
  static std::vector<std::string> options(std::string_view arch);

  // `name` stands for the source in messages. The source includes nothing.
  Result<NvrtcOutput> compile(const std::string &source, const std::string &name, std::string_view arch,
                              Output output) const;

  // The libraries that `open` tries, in order. Visible for the test and for `nsa doctor`.
  static std::vector<std::string> candidates(const NvrtcSearch &search);

private:
  Nvrtc() = default;
  // Null, and the reason, when the file is no NVRTC.
  static const Nvrtc *load(const std::string &path, std::string &reason);
  Status checkArch(std::string_view arch) const;

  struct Functions;
  const Functions *functions = nullptr;
  std::string versionText;
  int major = 0;
  int minor = 0;
  std::vector<int> archs;
};

// Reads ptxas' report on one kernel (--ptxas-options=-v). Lines it does not know are passed over.
std::map<std::string, std::string> parsePtxasReport(std::string_view log);

} // namespace nsa
