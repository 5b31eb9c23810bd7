// Digests: BLAKE2b-256 names everything that is stored (kernels by content, rows against damage),
// XXH3-128 makes in-memory keys, where speed counts and nobody forges.
// Thread-safety: functions are safe from any thread; a Digest belongs to one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace nsa {

// BLAKE2b with a 32-byte result (RFC 7693, no key).
class Digest {
public:
  using Bytes = std::array<std::byte, 32>;
  Digest();

  // Raw bytes: two updates equal one update of both together.
  Digest &update(std::span<const std::byte> bytes);
  Digest &update(std::string_view text);
  // One field of a record: its length (8 bytes, little endian), then its bytes, so that neighbouring
  // fields cannot trade bytes and keep the digest.
  Digest &field(std::span<const std::byte> bytes);
  Digest &field(std::string_view text);

  // Ends the digest; it takes no further input.
  Bytes finish();
  std::string finishHex();

private:
  // libsodium's state, whose type stays out of this header.
  alignas(64) std::byte state[384];
};

// Lower-case hexadecimal.
std::string toHex(std::span<const std::byte> bytes);

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128 &) const = default;
};

// XXH3-128. Never stored: its only promise is equality within a process.
Hash128 hash128(std::string_view bytes);

} // namespace nsa

template <> struct std::hash<nsa::Hash128> {
  size_t operator()(const nsa::Hash128 &key) const noexcept { return static_cast<size_t>(key.low); }
};
