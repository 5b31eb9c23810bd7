#include "cache/pack/pack_file.h"

#include "cache/database/directories.h"
#include "cache/database/fork_fence.h"
#include "cache/database/schema.h"
#include "cache/pack/pack_digest.h"

#include <algorithm>
#include <sys/stat.h>
#include <system_error>

namespace nsa {

namespace {

using sqlite::Connection;
using sqlite::Query;

constexpr std::string_view kSignedName = "nsa pack 1";
constexpr std::string_view kSignatureKey = "signature ";
// To check one takes a tenth of a millisecond.
constexpr size_t kMostSignatures = 32;
constexpr const char *kReadFacts = "SELECT key, value FROM pack ORDER BY key";

constexpr int kMostOpenings = 10;

constexpr const char *kTamperedHint = "take it again from where it was made; `nsa cache verify` names what differs";

std::string describe(FileVerdict verdict) {
  switch (verdict) {
  case FileVerdict::kForeign:
    return "it is no pack";
  case FileVerdict::kNewer:
    return "it was written by a newer version of this library";
  case FileVerdict::kDamaged:
    return "it is damaged, or its tables are not those of a pack";
  default:
    return "it cannot be read";
  }
}

template <size_t Count> bool copyBytes(std::span<const std::byte> from, std::array<std::byte, Count> &to) {
  if (from.size() != Count)
    return false;
  std::copy(from.begin(), from.end(), to.begin());
  return true;
}

Status readFacts(PackFile &file) {
  const auto broken = [&](const std::string &key, const std::string &rule) {
    return packError(file.path, "its field '" + key + "' " + rule, kTamperedHint);
  };
  bool hasFormat = false, hasSource = false, hasDigest = false, hasEvidence = false;
  const sqlite::ShortValues shortOnly(file.connection);
  Query query(file.connection, kReadFacts);
  while (query.step()) {
    const std::string key = query.text(0);
    const std::span<const std::byte> value = query.bytes(1);
    const std::string text(reinterpret_cast<const char *>(value.data()), value.size());
    if (key == "format") {
      if (text != std::to_string(kPackFormat))
        return packError(file.path, "its format is '" + text.substr(0, 20) + "', this library reads " +
                                        std::to_string(kPackFormat));
      hasFormat = true;
    } else if (key == "source") {
      file.facts.source = text;
      hasSource = true;
    } else if (key == "digest") {
      if (!(hasDigest = copyBytes(value, file.facts.digest)))
        return broken(key, "must have 32 bytes");
    } else if (key == "evidence_digest") {
      if (!(hasEvidence = copyBytes(value, file.facts.evidenceDigest)))
        return broken(key, "must have 32 bytes");
    } else if (key.starts_with(kSignatureKey)) {
      PackSignature signature;
      Result<PublicKey> signer = PublicKey::parse(key, key.substr(kSignatureKey.size()));
      if (!signer || !copyBytes(value, signature.signature))
        return broken(key, "must name a public key and have 64 bytes");
      if (file.facts.signatures.size() == kMostSignatures)
        return packError(file.path, "it has more than " + std::to_string(kMostSignatures) + " signatures",
                         kTamperedHint);
      signature.key = *signer;
      file.facts.signatures.push_back(signature);
    } else {
      return broken(key, "is unknown");
    }
  }
  if (query.code() != SQLITE_OK)
    return packError(file.path, std::string("it is damaged: ") + sqlite3_errstr(query.code()));
  for (const auto &[has, key] : {std::pair(hasFormat, "format"), std::pair(hasSource, "source"),
                                 std::pair(hasDigest, "digest"), std::pair(hasEvidence, "evidence_digest")})
    if (!has)
      return broken(key, "is missing");
  return Status::ok();
}

} // namespace

Status packError(const std::filesystem::path &path, const std::string &reason, std::string hint) {
  return Status::error(ErrorCode::kIoError, "pack '" + path.string() + "' is not used: " + reason, std::move(hint));
}

std::vector<std::byte> signedMessage(const Digest::Bytes &digest) {
  const std::span<const std::byte> name = std::as_bytes(std::span(kSignedName));
  std::vector<std::byte> message(name.begin(), name.end());
  message.insert(message.end(), digest.begin(), digest.end());
  return message;
}

bool isPackFile(const std::string &path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  // Judged before the look: where others may write, a pipe can take its name after the look, and would be waited for.
  if (error || !whyDatabaseNotTrusted(file).empty())
    return false;
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    return false;
  const std::unique_lock fence = ForkFence::hold(); // no fork while there is a connection that it does not know
  int code;
  const Connection connection = Connection::openImmutable(file.string(), code);
  return connection &&
         checkHeader(connection, FileKind::kPack, std::chrono::steady_clock::now()) == FileVerdict::kUsable;
}

Result<PackFile> PackFile::open(const std::string &path) {
  PackFile file;
  std::error_code error;
  file.path = std::filesystem::canonical(path, error);
  if (error)
    return packError(path, error.message());
  struct stat status{};
  if (::stat(file.path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    return packError(path, "it is no regular file");
  for (int openings = 1; !file.connection; ++openings) {
    if (const std::string reason = whyDatabaseNotTrusted(file.path); !reason.empty())
      return packError(file.path, reason);
    int code;
    file.connection = Connection::openImmutable(file.path.string(), code);
    if (!file.connection)
      return packError(file.path, sqlite3_errstr(code));
    if (!file.connection.hasMoved())
      break;
    // What is open is not what was judged: a new pack may just have been put in place.
    if (openings == kMostOpenings)
      return packError(file.path, "another file took its name each time it was opened");
    file.connection.close();
  }
  FileVerdict verdict = checkHeader(file.connection, FileKind::kPack, std::chrono::steady_clock::now());
  if (verdict == FileVerdict::kUsable)
    verdict = adoptPack(file.connection);
  if (verdict != FileVerdict::kUsable)
    return packError(file.path, describe(verdict));
  NSA_RETURN_IF_ERROR(readFacts(file));
  return file;
}

Status PackFile::checkDigest() {
  Digest::Bytes digest;
  PackIndex rows;
  if (const int code = digestRows(connection, facts.source, facts.evidenceDigest, digest, &rows))
    return packError(path, std::string("its rows cannot be read: ") + sqlite3_errstr(code), kTamperedHint);
  if (digest != facts.digest)
    return packError(path, "its digest is not that of its rows", kTamperedHint);
  index = std::move(rows);
  return Status::ok();
}

Status PackFile::checkEvidence() {
  Digest::Bytes digest;
  if (const int code = digestEvidence(connection, digest))
    return packError(path, std::string("its evidence cannot be read: ") + sqlite3_errstr(code), kTamperedHint);
  return digest == facts.evidenceDigest
             ? Status::ok()
             : packError(path, "its evidence digest is not that of its evidence", kTamperedHint);
}

bool PackFile::isSignedByOneOf(const std::vector<PublicKey> &keys) const {
  return std::ranges::any_of(facts.signatures, [&](const PackSignature &signature) {
    return std::ranges::find(keys, signature.key) != keys.end();
  });
}

Status PackFile::checkSignatures(const SignatureRules &rules) const {
  const std::vector<std::byte> message = signedMessage(facts.digest);
  for (const PackSignature &signature : facts.signatures)
    if (!signature.key.verifies(message, signature.signature))
      return packError(path, "its signature is not that of its digest: key " + signature.key.hex() + " did not make it",
                       kTamperedHint);
  if (!rules.requireSignature || isSignedByOneOf(rules.trusted))
    return Status::ok();
  if (facts.signatures.empty())
    return packError(path, "it is not signed, and a signature is required",
                     "`nsa cache sign` adds one; the trusted keys are those of cache_keys (NSA_CACHE_KEYS)");
  return packError(path, "none of the keys that signed it is trusted",
                   "name the public key with cache_keys (NSA_CACHE_KEYS): " + facts.signatures.front().key.hex());
}

std::string PackFile::signatureWarning(const SignatureRules &rules) const {
  if (rules.trusted.empty() || isSignedByOneOf(rules.trusted))
    return "";
  return "pack '" + path.string() + "' is used although none of the trusted keys has signed it; require_signature " +
         "(NSA_REQUIRE_SIGNATURE) refuses such packs";
}

} // namespace nsa
