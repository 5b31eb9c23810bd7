// Digests. A BLAKE2b-256 digest is the key under which a kernel's content is stored, and shows whether a stored row is
// damaged. The hash XXH3-128 is faster and serves only as the key of tables in memory, where a process that forges a
// key can harm only itself.
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

  // Adds raw bytes. Two calls of `update` give the same digest as one call with the concatenation of both texts.
  Digest &update(std::span<const std::byte> bytes);
  Digest &update(std::string_view text);
  // Adds one field of a record to the digest: its length (8 bytes, little endian), then its bytes. Because the length
  // of each field is part of the digest, the fields "ab", "c" have another digest than the fields "a", "bc".
  Digest &field(std::span<const std::byte> bytes);
  Digest &field(std::string_view text);

  // Returns the digest. After `finish` no function of a Digest may be called.
  Bytes finish();
  std::string finishHex();

private:
  // The state of libsodium's BLAKE2b as bytes, so that this header does not include libsodium's header.
  alignas(64) std::byte state[384];
};

// Lower-case hexadecimal.
std::string toHex(std::span<const std::byte> bytes);

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128 &) const = default;
};

// Returns the XXH3-128 of bytes. An XXH3-128 value must never be stored: only equality within one process is promised.
Hash128 hash128(std::string_view bytes);

} // namespace nsa

template <> struct std::hash<nsa::Hash128> {
  size_t operator()(const nsa::Hash128 &key) const noexcept { return static_cast<size_t>(key.low); }
};
