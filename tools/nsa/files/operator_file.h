// Makes the inputs of an operator from a file of tensors: it finds the tensor of each operand, derives fields of the
// spec from the shapes, and checks that the configuration agrees. Names, types and shapes of the tensors come from the
// operator's signature (runtime/base/signature.h), so every operator is read in the same way.
// Thread-safety: operator_file.h has only pure functions.
#pragma once

#include "runtime/json/config_file.h"
#include "tools/nsa/files/safetensors.h"
#include "tools/support/operator_job.h"

namespace nsa::tools {

struct OperatorFile {
  OperatorInputs inputs;
  // True if the tensors in the file have no batch dimension and the file has no lengths, so that a batch dimension of 1
  // was added in front.
  bool withoutBatch = false;
  // The tensors of the file that the operator does not read.
  std::vector<std::string> ignored;
};

// Reads the inputs. Tensors with a batch dimension in front are in the dense layout. Tensors without a batch dimension
// are in the packed layout if the file has cu_seqlens_q or cu_seqlens_k, and are otherwise one sequence in the dense
// layout. The operator combine reads no lengths. It is packed if the file has some, or if the configuration says so.
Result<OperatorFile> readOperatorFile(Operator op, const ConfigFile &config, const SafetensorsFile &file);

} // namespace nsa::tools
