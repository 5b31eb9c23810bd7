// Reads and writes files for the command line: reading returns the whole text of a file, or the reason why the file
// cannot be read. Writing replaces the whole file, or changes nothing if it fails.
// Thread-safety: distinct objects may be used from distinct threads.
#pragma once

#include "cache/database/replacing_file.h"
#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace nsa::tools {

// A regular file that is open for reading.
class InputFile {
public:
  InputFile() = default;
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&) = delete;
  ~InputFile();

  static Result<InputFile> open(const std::string &path);
  uint64_t size() const { return bytes; }
  const std::string &name() const { return path; }
  Status read(uint64_t offset, std::span<std::byte> target) const;

private:
  std::string path;
  int descriptor = -1;
  uint64_t bytes = 0;
};

// Refuses files above `limit` bytes.
Result<std::string> readText(const std::string &path, uint64_t limit);

inline constexpr const char *kStandardInput = "standard input"; // what errors call it
// Reads to the end. A file of more than `limit` bytes is refused.
Result<std::string> readStandardInput(uint64_t limit);

// A file that is written from start to end under a temporary name, and that replaces the file `path` when `commit` is
// called.
class OutputFile {
public:
  static Result<OutputFile> create(const std::string &path);
  Status write(std::span<const std::byte> data);
  Status commit();

private:
  OutputFile(ReplacingFile &&file, std::string path)
      : file(std::move(file)), path(std::move(path)), stream(this->file.temporaryPath(), std::ios::binary) {}
  Status failure() const;

  ReplacingFile file;
  std::string path;
  std::ofstream stream;
};

// Refuses an --output that would replace the file of --input.
Status checkOutputPath(const std::string &inputPath, const std::string &outputPath);

// Writes `text` as the whole content of the file `path`. If writing fails, an existing file at `path` stays as it was.
Status writeText(const std::string &path, std::string_view text);

} // namespace nsa::tools
