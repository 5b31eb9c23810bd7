// Turns an ELF object into one position-independent image: code and constants laid out flat, with every relocation
// applied. A stored image can be mapped and run without a linker and without a library. Undefined symbols, writable
// data and absolute addresses cannot be in an image; makeCpuImage fails with an error that names the symbol, section or
// relocation.
// Thread-safety: pure function.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace nsa::cpu {

struct CpuImage {
  std::vector<uint8_t> bytes; // to be mapped at an address that is a multiple of kImageAlignment
  int64_t entryOffset = 0;    // a multiple of 64
};

inline constexpr int64_t kImageAlignment = 64;

// `object` is an x86-64 ELF relocatable object. `entry` is the name of a function in `object`, and
// CpuImage::entryOffset is the offset of this function in the image.
Result<CpuImage> makeCpuImage(std::string_view object, std::string_view entry);

} // namespace nsa::cpu
