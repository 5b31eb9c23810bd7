// Inputs of the whole forward pass whose selection has a known structure, which drawn inputs do not have.
// tests/unit/support/structured_inputs_test.cpp checks each structure with the fp64 reference.
// Thread-safety: structured_inputs.h has only pure functions.
#pragma once

#include "tools/support/operator_job.h"

#include <cstdint>
#include <string_view>

namespace nsa::tools {

enum class Structure {
  // drawInputs, for any operator: neighbouring queries agree only in the forced blocks.
  kRandom,
  // The blocks of the sequence belong to clusters, and the blocks of one cluster are scattered over the sequence. The
  // blocks with the highest scores for a query are the blocks of one cluster, and the cluster stays the same for as
  // many queries as a block has tokens.
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

// Every structure but kRandom needs the operator nsa or decode, and the mean as phi, because what a learned phi keeps
// of a block depends on its weights. For decode, the tokens of the queries are new and the other keys are in the cache
// (kv_cache.h). The keys of the three branches are the same vectors, to which noise is added for each branch
// separately.
Result<OperatorInputs> drawStructuredInputs(const Spec &spec, const SequenceLengths &lengths,
                                            const StructureChoice &choice, uint64_t seed);

} // namespace nsa::tools
