// Ed25519 keys by which packs are signed, and the files they are kept in: one line, a name and hexadecimal digits.
// A digest finds damage; only a signature says who made a pack.
// Thread-safety: values; the functions may be called from any thread.
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
  // The line of a key file.
  std::string text() const;
  // From a line of a key file or from the digits alone; `field` names it in the error.
  static Result<PublicKey> parse(const std::string &field, std::string_view text);
  // A key that anyone could have put there is no key: the file is judged as those that it vouches for.
  static Result<PublicKey> read(const std::string &path);
  bool verifies(std::span<const std::byte> message, const Signature &signature) const;
  bool operator==(const PublicKey &) const = default;
};

// Wiped from memory at its end.
class SecretKey {
public:
  SecretKey(SecretKey &&other) noexcept;
  SecretKey &operator=(SecretKey &&) = delete;
  ~SecretKey();

  static SecretKey generate();
  static Result<SecretKey> parse(const std::string &field, std::string_view text);
  // Refuses a file that others may read.
  static Result<SecretKey> read(const std::string &path);

  std::string text() const;
  PublicKey publicKey() const;
  Signature sign(std::span<const std::byte> message) const;

private:
  SecretKey() = default;
  std::array<std::byte, 32> seed{};
};

// Whose signature of a pack counts. A false signature refuses a pack whatever the rules say.
struct SignatureRules {
  bool requireSignature = false; // one of the trusted keys must have signed
  std::vector<PublicKey> trusted{};
};

// The rules that these files of public keys make. A file that cannot be used is an error where a signature is required,
// and else a line of `warnings`: the other keys count all the same.
Result<SignatureRules> readSignatureRules(bool requireSignature, const std::vector<std::string> &keyFiles,
                                          std::vector<std::string> &warnings);

} // namespace nsa
