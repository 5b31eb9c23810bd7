// Digests. A BLAKE2b-256 digest is the key under which a kernel's content is stored, and shows whether a stored row is
// damaged.
// Thread-safety: functions are safe from any thread; a Digest belongs to one thread at a time.
#pragma once

#include <array>
#include <cstddef>
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

} // namespace nsa
