// Makes the inputs of a program of one's own from a file of tensors. Each tensor that the program reads has the name
// that the program declares.
// Thread-safety: program_file.h has only pure functions.
#pragma once

#include "tools/nsa/files/safetensors.h"
#include "tools/support/program_job.h"

namespace nsa::tools {

// Reads the tensors of the file that the program reads; the optional ones may be missing, and the file may have others
// (unusedTensors).
// `values` are as in nsa_program_create, but a scalar that alone is the extent of a dimension may be left out: the
// tensors say it, and `values` gets it. An error names the tensor or the value at fault.
Result<ProgramInputs> readProgramFile(const ProgramSource &source, ProgramValues &values, const SafetensorsFile &file);

// The tensors of the file that `inputs`, which were read from it, do not have, each with the tensor of the program that
// may be meant: "bais (did you mean 'bias'?)". These come first.
std::vector<std::string> unusedTensors(const ProgramInputs &inputs, const SafetensorsFile &file);

} // namespace nsa::tools
