// The files of templates/ as constants in the library. EmbedTemplates.cmake generates the definition.
#pragma once

#include <span>
#include <string_view>

namespace nsa {

struct EmbeddedTemplate {
  std::string_view path;
  std::string_view text;
};

// All files, in no particular order. A path is relative to templates/, such as "tile/attention.mlir".
std::span<const EmbeddedTemplate> embeddedTemplates();

} // namespace nsa
