// The Ed25519 keys that sign packs, and the files in which the keys are kept: one line, with a name and hexadecimal
// digits. A digest finds damage. A digest cannot say who made a pack; only a signature can.
// Thread-safety: keys are plain values, and the functions may be called from any thread.
#pragma once

#include "runtime/base/status.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

using Signature = std::array<std::byte, 64>;

struct PublicKey {
  std::array<std::byte, 32> bytes{};

  std::string hex() const;
  // The line that a key file contains.
  std::string text() const;
  // Parses a line of a key file, or only the hexadecimal digits of a key. `field` is the field that an error names,
  // and `text` is the value.
  static Result<PublicKey> parse(const std::string &field, std::string_view text);
  // Reads a key file. `read` refuses a key file that anyone but root and this user can write, because a signature by a
  // key that another user may have put there proves nothing.
  static Result<PublicKey> read(const std::string &path);
  bool verifies(std::span<const std::byte> message, const Signature &signature) const;
  bool operator==(const PublicKey &) const = default;
};

// The destructor wipes the key from memory.
class SecretKey {
public:
  SecretKey(SecretKey &&other) noexcept;
  SecretKey &operator=(SecretKey &&) = delete;
  ~SecretKey();

  static SecretKey generate();
  static Result<SecretKey> parse(const std::string &field, std::string_view text);
  // Reads a file of a secret key, and refuses a file that other users may read.
  static Result<SecretKey> read(const std::string &path);

  std::string text() const;
  PublicKey publicKey() const;
  Signature sign(std::span<const std::byte> message) const;

private:
  SecretKey() = default;
  std::array<std::byte, 32> seed{};
};

// Which public keys are trusted to sign packs, and whether a pack needs a signature. A pack with a wrong signature is
// refused also where no signature is required.
struct SignatureRules {
  bool requireSignature = false; // a trusted key must have signed a pack
  std::vector<PublicKey> trusted{};
};

// Makes the rules for signatures from files of public keys. If a signature is required, a key file that cannot be used
// is an error. If no signature is required, a key file that cannot be used adds a line to `warnings`, and the keys of
// the other files are used.
Result<SignatureRules> readSignatureRules(bool requireSignature, const std::vector<std::string> &keyFiles,
                                          std::vector<std::string> &warnings);

} // namespace nsa
