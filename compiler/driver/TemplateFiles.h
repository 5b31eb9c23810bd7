// The text files from which the compiler works: the templates and the device library. They are embedded in the library
// when it is built, or read from a folder that has the layout of templates/ (tile/*.mlir, cuda/**.cu, device/*.cuh).
// Thread-safety: immutable after construction.
#pragma once

#include "runtime/base/status.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

struct TemplateFile {
  std::string path; // such as "tile/attention.mlir"; both origins give the same path, so no folder name enters a digest
  std::string text;
};

class TemplateFiles {
public:
  static const TemplateFiles &embedded();
  // A folder or a file that cannot be read is an error that names it.
  static Result<TemplateFiles> read(const std::string &folder);

  // All files, ascending by path.
  std::span<const TemplateFile> files() const { return list; }
  // Null if there is no such file.
  const TemplateFile *find(std::string_view path) const;

private:
  std::vector<TemplateFile> list;
};

} // namespace nsa
