// Writes a file that gets its final name only when it is complete. A ReplacingFile is created under a temporary name in
// the folder of the final file, synced, and then renamed. Without `commit` it is removed.
// Thread-safety: only one thread at a time may use a ReplacingFile.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace nsa {

class ReplacingFile {
public:
  enum class Existing { kRefuse, kReplace };
  // Makes the empty file under its temporary name, and locks it until this object ends. A temporary file that a killed
  // process left is removed when it is at least an hour old and not locked. On a network file system temporary files
  // are neither locked nor removed.
  static Result<ReplacingFile> create(const std::string &path, Existing existing);
  ReplacingFile(ReplacingFile &&other) noexcept;
  ReplacingFile &operator=(ReplacingFile &&) = delete;
  ~ReplacingFile();

  const std::string &temporaryPath() const { return temporary; }
  Status commit();

private:
  ReplacingFile() = default;
  std::string path, temporary; // `temporary` is empty once the file has its name
  int descriptor = -1;         // holds the lock
  Existing existing = Existing::kRefuse;
};

} // namespace nsa
