// A new folder in the system's temporary folder, for the files of one test or of one bench run. The destructor removes
// the folder and its files.
// Thread-safety: only one thread at a time may use a ScratchFolder.
#pragma once

#include "runtime/base/status.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

namespace nsa::tools {

class ScratchFolder {
public:
  // Makes the folder. Only the current user may read the folder.
  static Result<ScratchFolder> make() {
    std::error_code error;
    std::string pattern = std::filesystem::temp_directory_path(error) / "nsa-XXXXXX";
    if (error || !mkdtemp(pattern.data()))
      return Status::error(ErrorCode::kIoError, "no folder can be made as " + pattern, "set TMPDIR");
    return ScratchFolder(std::move(pattern));
  }
  ScratchFolder(ScratchFolder &&other) noexcept : folder(std::exchange(other.folder, "")) {}
  ScratchFolder &operator=(ScratchFolder &&) = delete;
  ~ScratchFolder() {
    if (folder.empty())
      return;
    std::error_code ignored;
    // A test may have removed the access rights to the scratch folder, so they are restored before the folder is
    // removed.
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(folder, ignored);
  }

  const std::string &path() const { return folder; }
  std::string file(const std::string &name) const { return folder + "/" + name; }

private:
  explicit ScratchFolder(std::string folder) : folder(std::move(folder)) {}

  std::string folder;
};

} // namespace nsa::tools
