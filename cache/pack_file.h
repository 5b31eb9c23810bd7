// A pack as a file: opening it where it cannot change (sqlite's immutable=1: no lock, no file beside it), and what its
// table `pack` says of it. What may be believed is said in docs/cache_format.md.
// Thread-safety: none, as the connection.
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

// What a signature is made over.
std::vector<std::byte> signedMessage(const Digest::Bytes &digest);

struct PackFile {
  sqlite::Connection connection;
  std::filesystem::path path; // free of links
  PackFacts facts;
  PackIndex index; // of the rows that checkDigest found good

  // The structure holds and the facts are there; of the rows nothing is known yet. Errors say why it is not used.
  static Result<PackFile> open(const std::string &path);
  // Whether the rows are those that the digest is of; the evidence is not read.
  Status checkDigest();
  // Whether the evidence is that of its digest.
  Status checkEvidence();
  // Whether each signature is one of the digest by the key that it names, and, where the rules want one, whether a
  // trusted key is among them.
  Status checkSignatures(const SignatureRules &rules) const;
  // One line when there are trusted keys and none of them has signed; else "".
  std::string signatureWarning(const SignatureRules &rules) const;

private:
  bool isSignedByOneOf(const std::vector<PublicKey> &keys) const;
};

// By the file's header; whatever is no pack may be a database, whose opening says what is wrong. So it is with a file
// that others may write or replace, which is not opened. Not by a stream: to close one would drop the locks that this
// process holds on a database (cache/sqlite.h).
bool isPackFile(const std::string &path);

// "pack 'P' is not used: ...".
Status packError(const std::filesystem::path &path, const std::string &reason, std::string hint = "");

} // namespace nsa
