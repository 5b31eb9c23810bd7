// A scratch folder with the layout of templates/, for tests that change templates.
// Thread-safety: one thread.
#pragma once

#include "tests/harness/scratch.h"

namespace nsa::test {

class TemplateFolder : public Scratch {
public:
  // Copies all templates and device headers of the repository.
  void copyFrom(const std::string &templates) const {
    std::filesystem::copy(templates, path(), std::filesystem::copy_options::recursive);
  }
  void remove(const std::string &name) const { std::filesystem::remove_all(file(name)); }

  // Replaces a text that occurs in a file.
  void replace(const std::string &name, const std::string &before, const std::string &after) const {
    std::string text = read(name);
    replaceOnce(text, before, after);
    write(name, text);
  }
  // Leaves every tile's size its first two values, so that a test compiles few kernels.
  void keepFewChoices() const {
    for (const auto &entry : std::filesystem::directory_iterator(file("tile")))
      if (entry.path().extension() == ".tile") {
        std::string text = readFile(entry.path());
        constexpr std::string_view kSize = "_tile = ";
        for (size_t size = 0; (size = text.find(kSize, size)) != std::string::npos; size += kSize.size()) {
          if (!text.substr(text.rfind('\n', size) + 1).starts_with("choice "))
            continue;
          const size_t end = text.find_first_of(",\n", size), first = text.find('|', size);
          if (const size_t second = text.find('|', first + 1); first < end && second < end)
            text.erase(second - 1, end - second + 1);
        }
        writeFile(entry.path(), text);
      }
    EXPECT_NE(read("tile/attention.tile").find("\nchoice  query_tile = 16 | 32\n"), std::string::npos);
  }
};

} // namespace nsa::test
