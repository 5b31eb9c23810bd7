// The text files the compiler works from: templates and the device library, either embedded in the library when it was
// built or read from a folder laid out like templates/ (tile/*.mlir, cuda/**.cu, device/*.cuh).
// Thread-safety: immutable after construction.
#pragma once

#include "runtime/base/status.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

struct TemplateFile {
  std::string path; // "tile/attention.mlir": the same for both origins, so that no folder name enters a digest
  std::string text;
};

class TemplateFiles {
public:
  static const TemplateFiles &embedded();
  static Result<TemplateFiles> read(const std::string &folder);

  // Ascending by path.
  std::span<const TemplateFile> files() const { return list; }
  const TemplateFile *find(std::string_view path) const;

private:
  std::vector<TemplateFile> list;
};

} // namespace nsa
