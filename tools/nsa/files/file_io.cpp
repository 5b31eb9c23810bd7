#include "tools/nsa/files/file_io.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

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
  // Without O_NONBLOCK, opening a pipe without a writer would hang before it can be refused.
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
  NSA_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path));
  if (file.size() > limit)
    return ioError(path,
                   "has " + std::to_string(file.size()) + " bytes; at most " + std::to_string(limit) + " are read");
  std::string text(file.size(), '\0');
  NSA_RETURN_IF_ERROR(file.read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<std::string> readStandardInput(uint64_t limit) {
  std::string text;
  for (char block[4096];;) {
    const ssize_t got = ::read(STDIN_FILENO, block, sizeof block);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return ioError(kStandardInput, std::strerror(errno));
    if (got == 0)
      return text;
    text.append(block, static_cast<size_t>(got));
    if (text.size() > limit)
      return ioError(kStandardInput, "has more than " + std::to_string(limit) + " bytes");
  }
}

Status OutputFile::failure() const { return ioError(path, std::string("cannot be written: ") + std::strerror(errno)); }

Result<OutputFile> OutputFile::create(const std::string &path) {
  NSA_ASSIGN_OR_RETURN(ReplacingFile replacing, ReplacingFile::create(path, ReplacingFile::Existing::kReplace));
  OutputFile output(std::move(replacing), path);
  if (!output.stream)
    return output.failure();
  return output;
}

Status OutputFile::write(std::span<const std::byte> data) {
  stream.write(reinterpret_cast<const char *>(data.data()), static_cast<std::streamsize>(data.size()));
  return stream.flush() ? Status::ok() : failure();
}

Status OutputFile::commit() { return file.commit(); }

Status checkOutputPath(const std::string &inputPath, const std::string &outputPath) {
  std::error_code unknown; // a path without a file is no other one's
  if (!std::filesystem::equivalent(inputPath, outputPath, unknown))
    return Status::ok();
  return Status::invalid("--output", outputPath, "must not be the file of --input, which it would replace",
                         "name another file");
}

Status writeText(const std::string &path, std::string_view text) {
  NSA_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  NSA_RETURN_IF_ERROR(file.write(std::as_bytes(std::span(text))));
  return file.commit();
}

} // namespace nsa::tools
