// Makes the inputs of a program of one's own from a file of tensors. Each tensor that the program reads has the name
// that the program declares.
// Thread-safety: program_file.h has only pure functions.
#pragma once

#include "tools/nsa/files/safetensors.h"
#include "tools/support/program_job.h"

namespace nsa::tools {

// Reads the tensors of the file that the program reads; the optional ones may be missing, and the file may have others.
// `values` are as in nsa_program_create, but a scalar that alone is the extent of a dimension may be left out: the
// tensors say it, and `values` gets it. An error names the tensor or the value at fault.
Result<ProgramInputs> readProgramFile(const ProgramSource &source, ProgramValues &values, const SafetensorsFile &file);

} // namespace nsa::tools
