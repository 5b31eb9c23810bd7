// Runs every target on its checked-in inputs, without libFuzzer: nsa_fuzz_replay TARGET FOLDER.
// With a third argument it writes the inputs into that folder instead, as the fuzzers take them.
#include "tests/fuzz/fuzz_target.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace nsa::fuzz {
namespace {

namespace fs = std::filesystem;

std::string readFile(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int replay(const Target &target, const fs::path &from, const char *to) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(from, error))
    if (entry.is_regular_file())
      files.push_back(entry.path());
  std::ranges::sort(files);
  for (const fs::path &file : files) {
    std::printf("%s\n", file.c_str()); // the last one printed is the one that fails
    std::fflush(stdout);
    const std::string content = readFile(file);
    const std::string input = target.expand ? target.expand(content) : content;
    if (to)
      std::ofstream(fs::path(to) / file.stem(), std::ios::binary) << input;
    else
      target.run(input);
  }
  if (!to)
    target.run(""); // libFuzzer's first input, whatever there is
  if (files.empty())
    std::fprintf(stderr, "there is no input in '%s'\n", from.c_str());
  return files.empty() ? 1 : 0;
}

} // namespace
} // namespace nsa::fuzz

int main(int count, char **arguments) {
  if (count == 3 || count == 4)
    for (const nsa::fuzz::Target &target : nsa::fuzz::targets())
      if (target.name == arguments[1])
        return nsa::fuzz::replay(target, arguments[2], count == 4 ? arguments[3] : nullptr);
  std::fprintf(stderr, "usage: nsa_fuzz_replay TARGET FOLDER [FOLDER OF INPUTS TO BE WRITTEN]\ntargets:");
  for (const nsa::fuzz::Target &target : nsa::fuzz::targets())
    std::fprintf(stderr, " %s", std::string(target.name).c_str());
  std::fputc('\n', stderr);
  return 2;
}
