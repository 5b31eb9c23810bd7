// What a choice says of where it is from, once its kernel was compiled again by another revision of the compiler.
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <string_view>

namespace nsa {

// Of a measured choice: the measurement stays that of the compiler whose kernels were measured, as the new one's may
// want another config.
inline std::string remadeProvenance(std::string_view measured, std::string_view revision) {
  constexpr std::string_view kRemade = " remade=";
  return std::string(measured.substr(0, measured.find(kRemade))) + std::string(kRemade) + std::string(revision);
}

} // namespace nsa
