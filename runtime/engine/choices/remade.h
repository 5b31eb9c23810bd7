// Makes the provenance (the text that says how a choice was made) of a choice whose kernel another revision of the
// compiler compiled again.
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <string_view>

namespace nsa {

// Adds the new compiler revision to the provenance of a measured choice. remadeProvenance keeps the compiler revision
// with which the kernels were measured, because another configuration may be the fastest with the new compiler.
inline std::string remadeProvenance(std::string_view measured, std::string_view revision) {
  constexpr std::string_view kRemade = " remade=";
  return std::string(measured.substr(0, measured.find(kRemade))) + std::string(kRemade) + std::string(revision);
}

} // namespace nsa
