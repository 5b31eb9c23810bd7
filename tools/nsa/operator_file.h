// Makes the inputs of an operator from a file of tensors: which tensor plays which part, what the shapes say about the
// spec, and whether the configuration agrees. Names, types and shapes are those of the signature
// (runtime/base/signature.h), so every operator is read in the same way.
// Thread-safety: operator_file.h has only pure functions.
#pragma once

#include "tools/nsa/config_file.h"
#include "tools/nsa/safetensors.h"
#include "tools/support/operator_job.h"

namespace nsa::tools {

struct OperatorFile {
  OperatorInputs inputs;
  // The file has neither a batch nor lengths, so the inputs got a batch of one in front.
  bool withoutBatch = false;
};

// Reads the inputs. Tensors with a batch in front are dense. Tensors without a batch are packed where the file has
// cu_seqlens_q or cu_seqlens_k, and otherwise one dense sequence. Combine reads no lengths, so it is packed also where
// the configuration says so. Tensors of the file that the operator does not read are ignored.
Result<OperatorFile> readOperatorFile(Operator op, const ConfigFile &config, const SafetensorsFile &file);

} // namespace nsa::tools
