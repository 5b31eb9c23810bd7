// Draws inputs of the operators nsa, nsa_bwd and decode whose block selection has a known structure, for example that
// nearer blocks have higher scores. Independent random inputs have no such structure.
// tests/unit/support/structured_inputs_test.cpp checks each structure with the fp64 reference.
// Thread-safety: structured_inputs.h has only pure functions.
#pragma once

#include "tools/support/operator_job.h"

#include <cstdint>
#include <string_view>

namespace nsa::tools {

enum class Structure {
  // Independent random inputs, made by drawInputs for any operator. Neighbouring queries select unrelated blocks,
  // except for the blocks that every query must select (the first and the nearest blocks).
  kRandom,
  // Each block of the sequence belongs to one of several clusters, and the blocks of a cluster are scattered over the
  // sequence. For each query, the blocks of one cluster have the highest scores. All queries that lie in the same block
  // give the highest scores to the same cluster.
  kClustered,
  kRecency,      // a nearer block has a higher score
  kNeedle,       // one block has what the last queries look for, and all other blocks are noise
  kRealLocality, // neighbouring queries agree as much as those of a trained model (tests/data/README.md)
};
std::string_view structureName(Structure structure); // "random", "clustered", "recency", "needle", "real-locality"
Result<Structure> parseStructure(std::string_view name);

struct StructureChoice {
  Structure structure = Structure::kRandom;
  int64_t needlePosition = 0; // kNeedle only: a token of the block to find
};

// Every structure except kRandom needs the operator nsa, nsa_bwd or decode, and the mean as the compression function
// phi. With a learned phi, the scores of the compressed blocks would depend on the weights of phi. For decode, the
// tokens with queries are new, and the earlier tokens are in the cache (kv_cache.h). If `structure` is not kRandom, the
// keys of the three branches cmp, sel and win are the same vectors, to which noise is added for each branch separately.
Result<OperatorInputs> drawStructuredInputs(const Spec &spec, const SequenceLengths &lengths,
                                            const StructureChoice &choice, uint64_t seed);

} // namespace nsa::tools
