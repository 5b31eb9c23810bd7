// What a pack's digest covers, and its order. docs/cache_format.md has it in words, for other readers and writers.
// Thread-safety: none, as the connection.
#pragma once

#include "cache/pack_index.h"
#include "cache/sqlite.h"
#include "runtime/base/digest.h"

#include <string>

namespace nsa {

// Over `evidence` and `route_evidence`: large, and nothing a launch trusts, so it is read only to verify. Both return
// sqlite's own codes; SQLITE_MISMATCH for a column of a type that the schema forbids.
int digestEvidence(sqlite::Connection &connection, Digest::Bytes &digest);
// Over the schema, the kernels by their own digests, the choices, the routes and the given digest of the evidence. What
// it was computed of is added to `index`, when given.
int digestRows(sqlite::Connection &connection, const std::string &source, const Digest::Bytes &evidence,
               Digest::Bytes &digest, PackIndex *index = nullptr);

} // namespace nsa
