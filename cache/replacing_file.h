// A file that takes its name only when it is complete: made beside it, synced, then renamed; gone without `commit`.
// Thread-safety: one thread.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace nsa {

class ReplacingFile {
public:
  enum class Existing { kRefuse, kReplace };
  // Makes the empty file under its temporary name, and locks it until this ends. What a process left that was killed
  // at this, an hour ago or longer, goes: it is not locked. On a file system of a network nothing is locked, and goes.
  static Result<ReplacingFile> create(const std::string &path, Existing existing);
  ReplacingFile(ReplacingFile &&other) noexcept;
  ReplacingFile &operator=(ReplacingFile &&) = delete;
  ~ReplacingFile();

  // Where to write.
  const std::string &temporaryPath() const { return temporary; }
  Status commit();

private:
  ReplacingFile() = default;
  std::string path, temporary; // `temporary` is empty once there is none
  int descriptor = -1;         // has the lock
  Existing existing = Existing::kRefuse;
};

} // namespace nsa
