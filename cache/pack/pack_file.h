// Opens a pack in such a way that sqlite assumes that the file never changes (immutable=1: no lock, and no journal
// file), and reads the pack's table `pack`. docs/cache_format.md says which parts of a pack are trusted.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/database/signing_key.h"
#include "cache/database/sqlite.h"
#include "cache/pack/pack_index.h"
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

  // Opens a pack, and checks its structure and the table `pack`. Opening a pack does not check its rows. The error of a
  // failed open says why the pack cannot be used.
  static Result<PackFile> open(const std::string &path);
  // Fails when the digest of the rows is not the digest in the table `pack`. `checkDigest` does not read the evidence.
  Status checkDigest();
  // Fails when the digest of the evidence is not the digest in the table `pack`.
  Status checkEvidence();
  // Fails when a signature does not sign the pack's digest by the key that the signature names, or when the rules
  // require a signature and no trusted key has signed.
  Status checkSignatures(const SignatureRules &rules) const;
  // Returns one line if there are trusted keys and none of them has signed the pack, and otherwise "".
  std::string signatureWarning(const SignatureRules &rules) const;

private:
  bool isSignedByOneOf(const std::vector<PublicKey> &keys) const;
};

// Returns whether the file's header is the header of a pack. If isPackFile returns false, the caller may open the file
// as a database. If the file is neither a pack nor a database, the error of opening it as a database says what is wrong
// with the file. If other users may write or replace a file, isPackFile does not open it and returns false. The file is
// not read through a C++ stream, because closing the stream would drop the locks that this process holds on the same
// file as a database (cache/database/sqlite.h).
bool isPackFile(const std::string &path);

// The error whose text is "pack 'P' is not used: ...".
Status packError(const std::filesystem::path &path, const std::string &reason, std::string hint = "");

} // namespace nsa
