#include "tools/nsa/file_io.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace nsa::tools {
namespace {

Status ioError(const std::string &path, const std::string &reason, std::string hint = "") {
  return Status::error(ErrorCode::kIoError, path + ": " + reason, std::move(hint));
}

} // namespace

InputFile::InputFile(InputFile &&other) noexcept
    : path(std::move(other.path)), descriptor(std::exchange(other.descriptor, -1)), bytes(other.bytes) {}

InputFile::~InputFile() {
  if (descriptor >= 0)
    close(descriptor);
}

Result<InputFile> InputFile::open(const std::string &path) {
  InputFile file;
  file.path = path;
  // Without O_NONBLOCK opening a pipe that nobody writes would hang before it can be refused.
  file.descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor < 0)
    return ioError(path, std::strerror(errno));
  struct stat facts{};
  if (fstat(file.descriptor, &facts) != 0)
    return ioError(path, std::strerror(errno));
  if (!S_ISREG(facts.st_mode))
    return ioError(path, "is not a regular file");
  file.bytes = static_cast<uint64_t>(facts.st_size);
  return file;
}

Status InputFile::read(uint64_t offset, std::span<std::byte> target) const {
  while (!target.empty()) {
    const ssize_t got = pread(descriptor, target.data(), target.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return ioError(path, std::strerror(errno));
    if (got == 0)
      return ioError(path, "ended while it was read");
    offset += static_cast<uint64_t>(got);
    target = target.subspan(static_cast<size_t>(got));
  }
  return Status::ok();
}

Result<std::string> readText(const std::string &path, uint64_t limit) {
  Result<InputFile> file = InputFile::open(path);
  if (!file)
    return file.status();
  if (file->size() > limit)
    return ioError(path,
                   "has " + std::to_string(file->size()) + " bytes; at most " + std::to_string(limit) + " are read");
  std::string text(file->size(), '\0');
  NSA_RETURN_IF_ERROR(file->read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path(std::move(other.path)), temporary(std::move(other.temporary)),
      descriptor(std::exchange(other.descriptor, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor < 0)
    return;
  close(descriptor);
  unlink(temporary.c_str());
}

Status OutputFile::failure(const char *what) const {
  return ioError(path, std::string(what) + ": " + std::strerror(errno));
}

Result<OutputFile> OutputFile::create(const std::string &path) {
  OutputFile file;
  file.path = path;
  struct stat facts{};
  if (stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
    return ioError(path, "exists and is not a regular file", "name a file to be written");
  file.temporary = path + ".XXXXXX";
  file.descriptor = mkostemp(file.temporary.data(), O_CLOEXEC);
  if (file.descriptor < 0)
    return ioError(path, std::string("cannot be written: ") + std::strerror(errno),
                   "the folder must exist and be writable");
  // mkostemp gives 0600; the file shall have what any other new file has.
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(file.descriptor, 0666 & ~mask) != 0)
    return file.failure("cannot be written");
  return file;
}

Status OutputFile::write(std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t done = ::write(descriptor, data.data(), data.size());
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return failure("cannot be written");
    data = data.subspan(static_cast<size_t>(done));
  }
  return Status::ok();
}

Status OutputFile::commit() {
  // The data must be there before the name is: a crash may not leave an empty file under it.
  if (fsync(descriptor) != 0)
    return failure("cannot be written");
  if (rename(temporary.c_str(), path.c_str()) != 0)
    return failure("cannot be renamed into place");
  close(std::exchange(descriptor, -1));
  return Status::ok();
}

Status writeText(const std::string &path, std::string_view text) {
  Result<OutputFile> file = OutputFile::create(path);
  if (!file)
    return file.status();
  NSA_RETURN_IF_ERROR(file->write(std::as_bytes(std::span(text))));
  return file->commit();
}

} // namespace nsa::tools
