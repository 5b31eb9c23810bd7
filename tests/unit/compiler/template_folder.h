// A scratch folder laid out like templates/, removed at the end of a test.
// Belongs to one test.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

namespace nsa::test {

class TemplateFolder {
public:
  TemplateFolder() {
    static std::atomic<int> count = 0;
    root = std::filesystem::path(testing::TempDir()) /
           ("nsa_templates_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::remove_all(root);
    std::filesystem::create_directories(root);
  }
  ~TemplateFolder() { std::filesystem::remove_all(root); }
  TemplateFolder(const TemplateFolder &) = delete;
  TemplateFolder &operator=(const TemplateFolder &) = delete;

  // All of the repository's templates and device headers.
  void copyFrom(const std::string &folder) {
    std::filesystem::copy(folder, root, std::filesystem::copy_options::recursive);
  }
  void write(const std::string &file, const std::string &text) {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file, std::ios::binary) << text;
  }
  std::string read(const std::string &file) const {
    std::ifstream stream(root / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  void remove(const std::string &file) { std::filesystem::remove_all(root / file); }

  // Replaces one place of a file. A test whose place is gone must fail, not pass without having changed anything.
  void replace(const std::string &file, const std::string &before, const std::string &after) {
    std::string text = read(file);
    size_t at = text.find(before);
    ASSERT_NE(at, std::string::npos) << file << " has no '" << before << "'";
    write(file, text.replace(at, before.size(), after));
  }

  std::string path() const { return root.string(); }

private:
  std::filesystem::path root;
};

} // namespace nsa::test
