// The files of templates/ as constants in libnsa_compiler.so. EmbedTemplates.cmake generates the definition of
// embeddedTemplates().
#pragma once

#include <span>
#include <string_view>

namespace nsa {

struct EmbeddedTemplate {
  std::string_view path;
  std::string_view text;
};

// Returns all embedded files, in no particular order. The path of an embedded file is relative to templates/, such as
// "tile/attention.tile".
std::span<const EmbeddedTemplate> embeddedTemplates();

} // namespace nsa
