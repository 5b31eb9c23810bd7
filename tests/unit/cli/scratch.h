// A folder of a test's own, gone with it, and small files in it.
// Thread-safety: one thread.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace nsa::test {

class Scratch {
public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "nsa-cli-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~Scratch() { std::filesystem::remove_all(folder); }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  std::string path(const std::string &name) const { return (folder / name).string(); }
  std::string write(const std::string &name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    return path(name);
  }
  // Names of everything in the folder.
  std::vector<std::string> list() const {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      names.push_back(entry.path().filename().string());
    return names;
  }

private:
  std::filesystem::path folder;
};

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

} // namespace nsa::test
