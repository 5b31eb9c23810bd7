// Inputs of the whole forward whose selection has a stated structure: what a bench or a test wants to see beside drawn
// ones. Each statement is tested through the fp64 reference (tests/unit/support/structured_inputs_test.cpp).
// Thread-safety: pure functions.
#pragma once

#include "tools/support/operator_job.h"

#include <cstdint>
#include <string_view>

namespace nsa::tools {

enum class Structure {
  kRandom,    // drawInputs: of any operator; neighbouring queries agree in the forced blocks only
  kClustered, // blocks come in clusters, scattered over the sequence; a query's first choice is one of them, and stays
              // the same for a block's worth of queries
  kRecency,   // the nearer a block, the more it is wanted
  kNeedle,    // one block holds what the last queries look for; everything else is noise
  kRealLocality, // neighbouring queries agree as much as those of a trained model (tests/data/README.md)
};
std::string_view structureName(Structure structure); // "random", "clustered", "recency", "needle", "real-locality"
Result<Structure> parseStructure(std::string_view name);

struct StructureChoice {
  Structure structure = Structure::kRandom;
  int64_t needlePosition = 0; // a token of the block to find; needle
};

// All but random need nsa or decode, and the mean for compression: what a learned phi keeps of a block is its weights'
// affair. Of decode the queries' tokens are new and the other keys are in the cache (kv_cache.h).
// The three branches' keys are the same content with noise of their own.
Result<OperatorInputs> drawStructuredInputs(const Spec &spec, const SequenceLengths &lengths,
                                            const StructureChoice &choice, uint64_t seed);

} // namespace nsa::tools
