// A pack as a file: how it is opened so that it cannot change (sqlite's immutable=1: no lock, and no file beside it),
// and what its table `pack` says about it. docs/cache_format.md says which parts of a pack are trusted.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/pack_index.h"
#include "cache/signing_key.h"
#include "cache/sqlite.h"
#include "runtime/base/digest.h"
#include "runtime/base/status.h"

#include <filesystem>
#include <string>
#include <vector>

namespace nsa {

inline constexpr int kPackFormat = 1;

struct PackSignature {
  PublicKey key;
  Signature signature;
};

struct PackFacts {
  std::string source; // nsa_source_id of the library that wrote it
  Digest::Bytes digest{}, evidenceDigest{};
  std::vector<PackSignature> signatures;
};

// The bytes that a signature of a pack signs.
std::vector<std::byte> signedMessage(const Digest::Bytes &digest);

struct PackFile {
  sqlite::Connection connection;
  std::filesystem::path path; // has no links
  PackFacts facts;
  PackIndex index; // the rows, after checkDigest has found them good

  // Opens a pack, and checks its structure and the table `pack`. The rows are not checked yet. An error says why the
  // pack is not used.
  static Result<PackFile> open(const std::string &path);
  // Fails when the digest of the rows is not the one in the table `pack`. It does not read the evidence.
  Status checkDigest();
  // Fails when the digest of the evidence is not the one in the table `pack`.
  Status checkEvidence();
  // Fails when a signature is not one of the digest by the key that it names, or when the rules require a signature and
  // no trusted key has signed.
  Status checkSignatures(const SignatureRules &rules) const;
  // One line when there are trusted keys and none of them has signed; otherwise "".
  std::string signatureWarning(const SignatureRules &rules) const;

private:
  bool isSignedByOneOf(const std::vector<PublicKey> &keys) const;
};

// Whether the file's header is that of a pack. Any other file may be a database, and opening it as one says what is
// wrong. A file that other users may write or replace is not opened here, so it gives false too. The file is not read
// by a stream, because closing one would drop the locks that this process holds on a database (cache/sqlite.h).
bool isPackFile(const std::string &path);

// The error "pack 'P' is not used: ...".
Status packError(const std::filesystem::path &path, const std::string &reason, std::string hint = "");

} // namespace nsa
