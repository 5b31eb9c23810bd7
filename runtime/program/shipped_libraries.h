// The libraries of the tile language that ship with the compiler, as texts in libnsa.so: who runs a program without the
// compiler needs them. The build makes them of templates/tile/library (EmbedTemplates.cmake).
#pragma once

#include <span>
#include <string_view>

namespace nsa {

struct ShippedLibrary {
  std::string_view file; // "softmax.tile"
  std::string_view text;
};

// In no particular order.
std::span<const ShippedLibrary> shippedLibraries();

} // namespace nsa
