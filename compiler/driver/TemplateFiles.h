// The text files from which the compiler works: the templates and the device library. The text files are embedded in
// libnsa_compiler.so, or read from a folder that has the layout of templates/ (runtime/base/template_path.h).
// Thread-safety: TemplateFiles is immutable after construction.
#pragma once

#include "compiler/render/TemplateHeader.h"
#include "runtime/base/status.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

struct TemplateFile {
  std::string path; // such as "tile/attention.tile"; both origins give the same path, so no folder name enters a digest
  std::string text;
};

class TemplateFiles {
public:
  static const TemplateFiles &embedded();
  // If a folder or a file cannot be read, the error names its path.
  static Result<TemplateFiles> read(const std::string &folder);

  // All files, ascending by path.
  std::span<const TemplateFile> files() const { return list; }
  // Returns null if no template file has this path.
  const TemplateFile *find(std::string_view path) const;
  // Returns a function that finds texts in these files, which must outlive the function.
  FindTemplateText finder() const;

private:
  std::vector<TemplateFile> list;
};

} // namespace nsa
