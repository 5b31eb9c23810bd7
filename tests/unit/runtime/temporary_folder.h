// A folder of its own for one test, removed with everything in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace nsa::test {

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "nsa_test_XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw std::runtime_error("no temporary folder: " + name);
    folder = name;
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
    std::filesystem::remove_all(folder, error);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string file(const std::string &name) const { return (folder / name).string(); }

private:
  std::filesystem::path folder;
};

} // namespace nsa::test
