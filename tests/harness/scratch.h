// A test's own folder, which is removed with it, and functions for files and texts. A change to a text fails when the
// text no longer has the place to change, because the test would otherwise pass without a change.
// Thread-safety: one thread.
#pragma once

#include "tools/support/scratch_folder.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace nsa::test {

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  file >> text.rdbuf();
  return std::move(text).str();
}

inline void writeFile(const std::string &path, std::string_view content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  EXPECT_TRUE(file.good()) << path << " was not written";
}

inline void replaceOnce(std::string &text, const std::string &from, const std::string &to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << "the text no longer has '" << from << "'";
  text.replace(at, from.size(), to);
}

class Scratch : public tools::ScratchFolder {
public:
  Scratch() : ScratchFolder(opened()) {}

  // Writes a file, makes the folders above it, and returns its path.
  std::string write(const std::string &name, std::string_view content) const {
    const std::string path = file(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    writeFile(path, content);
    return path;
  }
  std::string read(const std::string &name) const { return readFile(file(name)); }
  // The names of everything in the folder.
  std::vector<std::string> list() const {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(path()))
      names.push_back(entry.path().filename().string());
    return names;
  }

private:
  static ScratchFolder opened() {
    Result<ScratchFolder> folder = make();
    if (!folder)
      throw std::runtime_error(folder.status().toString());
    return std::move(*folder);
  }
};

} // namespace nsa::test
