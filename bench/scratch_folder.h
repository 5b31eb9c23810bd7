// A folder of its own for the caches of one bench run, removed with all that is in it.
// Thread-safety: one thread.
#pragma once

#include "runtime/base/status.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

namespace nsa::bench {

class ScratchFolder {
public:
  static Result<ScratchFolder> make() {
    std::error_code error;
    std::string pattern = std::filesystem::temp_directory_path(error) / "nsa-bench-XXXXXX";
    if (error || !mkdtemp(pattern.data()))
      return Status::error(ErrorCode::kIoError, "no folder can be made as " + pattern, "set TMPDIR");
    return ScratchFolder(std::move(pattern));
  }
  ScratchFolder(ScratchFolder &&other) noexcept : path(std::exchange(other.path, "")) {}
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path.empty())
      std::filesystem::remove_all(path, ignored);
  }
  std::string file(const std::string &name) const { return path + "/" + name; }

private:
  explicit ScratchFolder(std::string path) : path(std::move(path)) {}
  std::string path;
};

} // namespace nsa::bench
