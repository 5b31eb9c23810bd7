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
  // Leaves the tile program four candidates, so that a test compiles few kernels.
  void keepFewChoices() const {
    replace("tile/attention.mlir", "query_tile = 16 | 32 | 64 | 128", "query_tile = 16 | 32");
    replace("tile/attention.mlir", "key_tile = 16 | 32 | 48 | 64 | 96 | 128", "key_tile = 16 | 32");
  }
};

} // namespace nsa::test
