// From a file of tensors to the inputs of an attention operator: which tensor plays which part, what the
// shapes say about the spec, and whether the configuration agrees.
// Thread-safety: pure functions.
#pragma once

#include "tools/nsa/config_file.h"
#include "tools/nsa/safetensors.h"
#include "tools/support/attention_job.h"

namespace nsa::tools {

struct AttentionFile {
  AttentionInputs inputs;
  bool withoutBatch = false; // the file has rank 3 and no lengths; the inputs got a batch of one in front
};

// Names: q, k_win else k, v_win else v, cu_seqlens_q and/or cu_seqlens_k. Rank 4 [batch, time, heads, dim] is
// dense; rank 3 [time, heads, dim] is packed with cu_seqlens and one dense sequence without.
// Further tensors in the file are not looked at.
Result<AttentionFile> readAttentionFile(Operator op, const ConfigFile &config, const SafetensorsFile &file);

} // namespace nsa::tools
