// The checked mode of programs of one's own: a call is run by the interpreter of the tile language, which finds what a
// program does that it must not do.
// Thread-safety: pure functions, besides the memory of the tensors.
#pragma once

#include "runtime/base/manifest.h"
#include "runtime/device/device.h"
#include "runtime/engine/program/program_call.h"

#include <span>
#include <string>

namespace nsa {

struct CheckedProgram {
  const ProgramSource &source;
  const ProgramInterface &interface;
  const Manifest &manifest;       // of the kernel whose configuration is checked
  const std::string &templateDir; // where libraries lie that the program does not bring along; "": in this library
};

// Runs the call on copies of the tensors in host memory. If nothing is found, the tensors that the program stores to
// get what the interpreter has computed, and what the program reports is the error of the call. Otherwise no tensor is
// changed, and the error lists what was found. `device` has the tensors' memory, which no kernel may use meanwhile.
Status checkProgramCall(const CheckedProgram &program, Device &device, std::span<const NamedTensor> tensors,
                        std::span<const NamedScalar> scalars);

} // namespace nsa
