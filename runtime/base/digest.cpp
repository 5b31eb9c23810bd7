#include "runtime/base/digest.h"

#include <new>
#include <sodium.h>

namespace nsa {

namespace {

using State = crypto_generichash_blake2b_state;

State *sodiumState(std::byte *memory) { return std::launder(reinterpret_cast<State *>(memory)); }

} // namespace

Digest::Digest() {
  static_assert(sizeof(State) == sizeof state && alignof(State) <= 64, "the buffer holds libsodium's state");
  // Picks the fastest implementation for this processor; libsodium makes repeated calls harmless.
  static const int ready = sodium_init();
  (void)ready;
  new (state) State;
  crypto_generichash_blake2b_init(sodiumState(state), nullptr, 0, sizeof(Bytes));
}

Digest &Digest::update(std::span<const std::byte> bytes) {
  crypto_generichash_blake2b_update(sodiumState(state), reinterpret_cast<const unsigned char *>(bytes.data()),
                                    bytes.size());
  return *this;
}

Digest &Digest::update(std::string_view text) { return update(std::as_bytes(std::span(text))); }

Digest &Digest::field(std::span<const std::byte> bytes) {
  std::byte length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<std::byte>(static_cast<uint64_t>(bytes.size()) >> (8 * i));
  return update(std::span<const std::byte>(length)).update(bytes);
}

Digest &Digest::field(std::string_view text) { return field(std::as_bytes(std::span(text))); }

Digest::Bytes Digest::finish() {
  Bytes result;
  crypto_generichash_blake2b_final(sodiumState(state), reinterpret_cast<unsigned char *>(result.data()), result.size());
  return result;
}

std::string Digest::finishHex() { return toHex(finish()); }

std::string toHex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

} // namespace nsa
