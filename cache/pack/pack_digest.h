// Computes a pack's digests. The digests of a pack are computed over certain columns in a certain order, which
// docs/cache_format.md describes for other programs that read or write packs.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/database/sqlite.h"
#include "cache/pack/pack_index.h"
#include "runtime/base/digest.h"

#include <string>

namespace nsa {

// Computes the digest of the tables `evidence` and `route_evidence`, which contain the measurements of the tuner. The
// measurements are large and no kernel launch relies on them, so opening a pack does not check this digest, and
// verifying a pack does. digestEvidence and digestRows return sqlite's own codes, and SQLITE_MISMATCH for a column
// whose type the schema forbids.
int digestEvidence(sqlite::Connection &connection, Digest::Bytes &digest);
// Computes the digest of `source`, of the pack's schema, of the rows of the kernels, choices and routes, and of
// `evidence`, which is the result of digestEvidence. Of a kernel's binary only the stored digest is read. If `index` is
// not null, digestRows also adds the rows of the kernels, choices and routes to `index`.
int digestRows(sqlite::Connection &connection, const std::string &source, const Digest::Bytes &evidence,
               Digest::Bytes &digest, PackIndex *index = nullptr);

} // namespace nsa
