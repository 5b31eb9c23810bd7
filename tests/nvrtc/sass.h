// Counts machine instructions in a cubin, where no disassembler is at hand: the low 12 bits of each 128-bit word of the
// kernels' code are the opcode (found by compiling kernels with known counts of each). Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

namespace nsa::test {

enum Opcode : uint32_t {
  kHmma = 0x23c,           // mma.sync
  kLdsm = 0x83b,           // ldmatrix
  kLdgsts = 0xfae,         // cp.async
  kHgmma = 0x9f0,          // wgmma, both operands in shared memory
  kHgmmaRegisters = 0xdf0, // wgmma, the left one in registers
  kUtmaldg = 0x5b4,        // cp.async.bulk.tensor from global memory
  kLdl = 0x983,            // load from local memory: a spill, or an array with a run-time index
  kStl = 0x387,            // store to local memory
  kLdg = 0x981,            // load from global memory
  kStg = 0x986,            // store to global memory
  kWide = 0x1000,          // added to the opcode of a load or a store of 16 bytes: three higher bits have its size
};

// Opcode -> occurrences over all kernels of the cubin. Accesses to global memory of 16 bytes are counted once more,
// with kWide. Empty if `cubin` is no 64-bit ELF file with code.
inline std::map<uint32_t, int> countOpcodes(std::string_view cubin) {
  std::map<uint32_t, int> counts;
  bool inBounds = true;
  auto read = [&]<typename T>(size_t offset, T) {
    T value{};
    inBounds &= offset <= cubin.size() && sizeof(T) <= cubin.size() - offset;
    if (inBounds)
      std::memcpy(&value, cubin.data() + offset, sizeof value);
    return value;
  };
  if (!cubin.starts_with("\177ELF\2"))
    return counts;
  // ELF64: section header table, its entry size and count, and the section that holds the names.
  const size_t table = read(0x28, uint64_t{});
  const size_t entryBytes = read(0x3a, uint16_t{}), entries = read(0x3c, uint16_t{});
  const size_t names = read(table + entryBytes * read(0x3e, uint16_t{}) + 24, uint64_t{});
  for (size_t i = 0; i < entries && inBounds; ++i) {
    const size_t header = table + entryBytes * i;
    const size_t name = names + read(header, uint32_t{});
    if (name > cubin.size() || !cubin.substr(name).starts_with(".text."))
      continue;
    const size_t begin = read(header + 24, uint64_t{}), bytes = read(header + 32, uint64_t{});
    for (size_t word = begin; word + 16 <= begin + bytes && inBounds; word += 16) {
      const uint32_t opcode = read(word, uint32_t{}) & 0xfff;
      ++counts[opcode];
      const bool isOfMemory = opcode == kLdg || opcode == kStg;
      if (isOfMemory && (read(word + 8, uint32_t{}) >> 9 & 7) == 6)
        ++counts[opcode | kWide];
    }
  }
  return inBounds ? counts : std::map<uint32_t, int>();
}

} // namespace nsa::test
