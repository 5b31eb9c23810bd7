#include "tests/fuzz/fuzz_target.h"

#include "tools/support/scratch_folder.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace nsa::fuzz {
namespace {

std::vector<Target> &registered() {
  static std::vector<Target> list;
  return list;
}

[[noreturn]] void giveUp(const std::string &reason) {
  std::fprintf(stderr, "fuzz target: %s\n", reason.c_str());
  std::abort();
}

const tools::ScratchFolder &folder() {
  static const tools::ScratchFolder scratch = [] {
    Result<tools::ScratchFolder> made = tools::ScratchFolder::make();
    if (!made)
      giveUp(made.status().toString());
    return std::move(*made);
  }();
  return scratch;
}

} // namespace

Registration::Registration(const Target &target) { registered().push_back(target); }

const std::vector<Target> &targets() { return registered(); }

void expect(bool holds, std::string_view what) {
  if (!holds)
    giveUp("does not hold: " + std::string(what));
}

std::string writeInput(const std::string &name, std::string_view content) {
  std::string path = folder().file(name);
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0 || ::write(descriptor, content.data(), content.size()) != static_cast<ssize_t>(content.size()))
    giveUp(path + " cannot be written");
  ::close(descriptor);
  return path;
}

std::string readBack(const std::string &path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts{};
  if (descriptor < 0 || ::fstat(descriptor, &facts) != 0)
    giveUp(path + " cannot be read");
  std::string content(static_cast<size_t>(facts.st_size), '\0');
  if (::read(descriptor, content.data(), content.size()) != facts.st_size)
    giveUp(path + " cannot be read");
  ::close(descriptor);
  return content;
}

void clearInputs() {
  for (const auto &entry : std::filesystem::directory_iterator(folder().path()))
    std::filesystem::remove_all(entry.path());
}

uint8_t Draw::byte() {
  if (bytes.empty())
    return 0;
  const auto value = static_cast<uint8_t>(bytes.back());
  bytes.remove_suffix(1);
  return value;
}

int64_t Draw::number() {
  constexpr int64_t kEnds[] = {INT64_MIN,        INT64_MIN + 1,    INT32_MIN,     INT32_MAX,
                               int64_t{1} << 32, int64_t{1} << 62, INT64_MAX - 1, INT64_MAX};
  const uint8_t first = byte();
  if (first >= 0xf8)
    return kEnds[first - 0xf8];
  if (first < 0xc0)
    return first - 32;
  uint64_t bits = 0;
  for (size_t i = 0; i < sizeof bits; ++i)
    bits = bits << 8 | byte();
  return static_cast<int64_t>(bits);
}

} // namespace nsa::fuzz
