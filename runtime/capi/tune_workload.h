// The body of nsa_tune_workload.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/engine/engine.h"
#include "runtime/include/nsa/nsa.h"

#include <string>

namespace nsa::capi {

// Returns the report as JSON. `options` may be null.
Result<std::string> tuneWorkload(Engine &engine, const char *workload, const nsa_tune_options *options,
                                 nsa_tune_counts &counts);

} // namespace nsa::capi
