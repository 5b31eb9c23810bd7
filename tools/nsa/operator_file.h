// From a file of tensors to the inputs of an operator: which tensor plays which part, what the shapes say about the
// spec, and whether the configuration agrees. Names, types and shapes are those of the signature
// (runtime/base/signature.h), so every operator is read the same way.
// Thread-safety: pure functions.
#pragma once

#include "tools/nsa/config_file.h"
#include "tools/nsa/safetensors.h"
#include "tools/support/operator_job.h"

namespace nsa::tools {

struct OperatorFile {
  OperatorInputs inputs;
  bool withoutBatch = false; // the file has neither a batch nor lengths; the inputs got a batch of one in front
};

// Tensors with a batch in front are dense, those without are packed beside cu_seqlens_q and/or cu_seqlens_k and one
// dense sequence where there are no lengths. Combine, which reads no lengths, is also packed where the configuration
// says so. Further tensors in the file are not looked at.
Result<OperatorFile> readOperatorFile(Operator op, const ConfigFile &config, const SafetensorsFile &file);

} // namespace nsa::tools
