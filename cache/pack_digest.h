// Computes a pack's digests. The digests of a pack are computed over certain columns in a certain order, which
// docs/cache_format.md describes for other programs that read or write packs.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/pack_index.h"
#include "cache/sqlite.h"
#include "runtime/base/digest.h"

#include <string>

namespace nsa {

// The digest of the tables `evidence` and `route_evidence`. The evidence is large and no kernel launch relies on it, so
// only a verification of the pack reads it. The functions that compute digests return sqlite's own codes, and
// SQLITE_MISMATCH for a column whose type the schema forbids.
int digestEvidence(sqlite::Connection &connection, Digest::Bytes &digest);
// The digest of the schema, the kernels (by their own digests), the choices, the routes and the given digest of the
// evidence. If `index` is given, the rows that the digest was computed from are added to it.
int digestRows(sqlite::Connection &connection, const std::string &source, const Digest::Bytes &evidence,
               Digest::Bytes &digest, PackIndex *index = nullptr);

} // namespace nsa
