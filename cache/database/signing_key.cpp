#include "cache/database/signing_key.h"

#include "runtime/base/digest.h"
#include "runtime/base/trust.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sodium.h>
#include <sys/stat.h>
#include <system_error>

namespace nsa {

namespace {

constexpr std::string_view kPublicName = "nsa-public-key-1";
constexpr std::string_view kSecretName = "nsa-secret-key-1";
constexpr size_t kLongestLine = 4096;

using Bytes32 = std::array<std::byte, 32>;

const unsigned char *raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char *>(bytes.data());
}
unsigned char *writable(std::span<std::byte> bytes) { return reinterpret_cast<unsigned char *>(bytes.data()); }

// libsodium makes repeated calls harmless.
void prepare() {
  static const int ready = sodium_init();
  (void)ready;
}

// sodium_hex2bin takes capital digits too, which no key file has.
bool parseHex(std::string_view digits, Bytes32 &bytes) {
  return digits.size() == 2 * bytes.size() && digits.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         sodium_hex2bin(writable(bytes), bytes.size(), digits.data(), digits.size(), nullptr, nullptr, nullptr) == 0;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  return text;
}

// What a text is taken for is said, never the text: it may be a secret.
Status parseKey(const std::string &field, std::string_view text, std::string_view name, Bytes32 &bytes) {
  std::string_view digits = trimmed(text);
  if (digits.starts_with(name) && digits.substr(name.size()).starts_with(' '))
    digits.remove_prefix(name.size() + 1);
  if (parseHex(digits, bytes))
    return Status::ok();
  return Status::invalid(field, std::to_string(text.size()) + " bytes",
                         "must be '" + std::string(name) + "', a blank and 64 digits 0-9 a-f",
                         "`nsa cache keygen` writes a pair of keys");
}

Status unreadable(const std::string &path, int error) {
  return Status::error(ErrorCode::kIoError,
                       "key file '" + path + "' cannot be read: " + std::generic_category().message(error));
}

// `judge` looks at the facts of what is open, because the name may be another file's by then.
template <typename Judge> Result<std::string> readLine(const std::string &path, Judge judge) {
  const std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  struct stat facts{};
  if (!file || ::fstat(::fileno(file.get()), &facts) != 0)
    return unreadable(path, errno);
  NSA_RETURN_IF_ERROR(judge(facts));
  std::setvbuf(file.get(), nullptr, _IONBF, 0); // a secret leaves no copy in a buffer
  std::string text(kLongestLine, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()))
    return unreadable(path, errno);
  return text;
}

} // namespace

std::string PublicKey::hex() const { return toHex(bytes); }

std::string PublicKey::text() const { return std::string(kPublicName) + " " + hex() + "\n"; }

Result<PublicKey> PublicKey::parse(const std::string &field, std::string_view text) {
  PublicKey key;
  NSA_RETURN_IF_ERROR(parseKey(field, text, kPublicName, key.bytes));
  return key;
}

Result<PublicKey> PublicKey::read(const std::string &path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error)
    return unreadable(path, error.value());
  const auto judged = [&](const std::string &reason) {
    return reason.empty() ? Status::ok()
                          : Status::error(ErrorCode::kIoError, "key file '" + path + "' is not used: " + reason);
  };
  NSA_RETURN_IF_ERROR(judged(whyFolderNotTrusted(real.parent_path().string())));
  Result<std::string> text = readLine(
      real.string(), [&](const struct stat &facts) { return judged(whyFileNotTrusted(real.string(), facts)); });
  return text ? parse(path, *text) : Result<PublicKey>(text.status());
}

bool PublicKey::verifies(std::span<const std::byte> message, const Signature &signature) const {
  prepare();
  return crypto_sign_ed25519_verify_detached(raw(signature), raw(message), message.size(), raw(bytes)) == 0;
}

SecretKey::SecretKey(SecretKey &&other) noexcept : seed(other.seed) { sodium_memzero(other.seed.data(), seed.size()); }

SecretKey::~SecretKey() { sodium_memzero(seed.data(), seed.size()); }

SecretKey SecretKey::generate() {
  prepare();
  SecretKey key;
  randombytes_buf(key.seed.data(), key.seed.size());
  return key;
}

Result<SecretKey> SecretKey::parse(const std::string &field, std::string_view text) {
  SecretKey key;
  NSA_RETURN_IF_ERROR(parseKey(field, text, kSecretName, key.seed));
  return key;
}

Result<SecretKey> SecretKey::read(const std::string &path) {
  Result<std::string> text = readLine(path, [&](const struct stat &facts) {
    return facts.st_mode & (S_IRWXG | S_IRWXO)
               ? Status::error(ErrorCode::kIoError,
                               "key file '" + path + "' is not used: others than its owner may open it",
                               "chmod 600 it; if others may have read it, make a new pair with `nsa cache keygen`")
               : Status::ok();
  });
  if (!text)
    return text.status();
  Result<SecretKey> key = parse(path, *text);
  sodium_memzero(text->data(), text->size());
  return key;
}

std::string SecretKey::text() const { return std::string(kSecretName) + " " + toHex(seed) + "\n"; }

PublicKey SecretKey::publicKey() const {
  prepare();
  PublicKey key;
  unsigned char secret[crypto_sign_ed25519_SECRETKEYBYTES];
  crypto_sign_ed25519_seed_keypair(writable(key.bytes), secret, raw(seed));
  sodium_memzero(secret, sizeof secret);
  return key;
}

Signature SecretKey::sign(std::span<const std::byte> message) const {
  prepare();
  unsigned char secret[crypto_sign_ed25519_SECRETKEYBYTES], ignored[crypto_sign_ed25519_PUBLICKEYBYTES];
  crypto_sign_ed25519_seed_keypair(ignored, secret, raw(seed));
  Signature signature{};
  crypto_sign_ed25519_detached(writable(signature), nullptr, raw(message), message.size(), secret);
  sodium_memzero(secret, sizeof secret);
  return signature;
}

Result<SignatureRules> readSignatureRules(bool requireSignature, const std::vector<std::string> &keyFiles,
                                          std::vector<std::string> &warnings) {
  SignatureRules rules{.requireSignature = requireSignature};
  for (const std::string &path : keyFiles) {
    if (Result<PublicKey> key = PublicKey::read(path))
      rules.trusted.push_back(*key);
    else if (requireSignature)
      return key.status();
    else
      warnings.push_back(key.status().toString());
  }
  return rules;
}

} // namespace nsa
