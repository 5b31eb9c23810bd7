// Measures the kernel of a program of one's own, and compares the rates at which it does the work that the program
// declares with the rates of the device.
// Thread-safety: one thread.
#pragma once

#include "bench/verbs/length_bench.h"
#include "tools/support/program_job.h"

namespace nsa::bench {

// The program and the values with which it is measured. It has no specs and no lengths.
struct ProgramChoice : LengthChoice {
  tools::ProgramRequest request;
};

// Measures the default kernel, and the tuned kernel if it is wanted, on drawn tensors that have the sizes of the
// values. A scalar that no size is made of is 1 unless its value is given, as it is for the tuner. `peers` measure the
// same program in turns with this library; nullptr: none do. The report is named after the program.
Result<nlohmann::ordered_json> benchProgram(BenchDevice &device, const ProgramChoice &choice, PeerProcess *peers);

} // namespace nsa::bench
