// Reads and writes files in the safetensors format: an 8-byte header length, a JSON header, then the tensors' bytes.
// The reader trusts nothing in the file: every malformed file is an error that says what is wrong with it. Tensors are
// written into a temporary file in the folder of the new file, and the temporary file is renamed when it is complete,
// so that a half-written file is never seen.
// Thread-safety: distinct objects of SafetensorsFile may be used from distinct threads.
#pragma once

#include "runtime/base/status.h"
#include "tools/nsa/files/file_io.h"
#include "tools/support/host_tensor.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace nsa::tools {

class SafetensorsFile {
public:
  struct Entry {
    std::string dtype; // the format's own name: "BF16", "I64", ...
    std::vector<int64_t> shape;
    uint64_t begin = 0; // bytes from the start of the file
    uint64_t end = 0;
  };

  // Reads and checks the file's header, but no tensor.
  static Result<SafetensorsFile> open(const std::string &path);

  const std::map<std::string, Entry> &entries() const { return tensors; }
  bool contains(const std::string &name) const { return tensors.count(name) != 0; }
  // Reads a tensor. Types other than BF16, F16, F32 and I32 are legal in a safetensors file, and the reader refuses
  // them.
  Result<HostTensor> read(const std::string &name) const;

private:
  std::string path;
  std::map<std::string, Entry> tensors;
};

// Writes tensors. `file` is the result of OutputFile::create, so a program can find out before it computes whether the
// file can be written.
Status writeSafetensors(Result<OutputFile> file,
                        const std::vector<std::pair<std::string, const HostTensor *>> &tensors);

} // namespace nsa::tools
