// Writes and reads the provenance of stored choices and thresholds: the text that says how a row was made
// (docs/cache_format.md).
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace nsa {

inline constexpr std::string_view kProvenanceCompiler = "compiler=";

// Returns the provenance of a row that a revision of the compiler made.
inline std::string provenanceOf(std::string_view revision) {
  return std::string(kProvenanceCompiler) + std::string(revision);
}

// Returns the revision of the compiler with which a row was made, or "" if the provenance does not name a revision.
// When another revision of the compiler compiles the kernel of a measured choice again, the choice keeps the revision
// with which it was measured.
inline std::string revisionOf(std::string_view provenance) {
  const size_t at = provenance.find(kProvenanceCompiler);
  if (at == std::string_view::npos)
    return "";
  const std::string_view revision = provenance.substr(at + kProvenanceCompiler.size());
  return std::string(revision.substr(0, revision.find(' ')));
}

// Adds the new compiler revision to the provenance of a measured choice. remadeProvenance keeps the compiler revision
// with which the kernels were measured, because another configuration may be the fastest with the new compiler.
inline std::string remadeProvenance(std::string_view measured, std::string_view revision) {
  constexpr std::string_view kRemade = " remade=";
  return std::string(measured.substr(0, measured.find(kRemade))) + std::string(kRemade) + std::string(revision);
}

} // namespace nsa
