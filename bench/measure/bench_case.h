// The shapes that benches measure on a device, and the least possible time of each shape.
// Thread-safety: bench_case.h has only pure functions.
#pragma once

#include "tools/support/operator_job.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace nsa::bench {

struct BenchCase {
  std::string name; // of the head geometry: "nsa192", ...
  Spec spec;
  Maxima maxima;
};

// Shapes of window, compressed and dense attention from a short to a long sequence, each with four kinds of heads: the
// heads of the NSA paper, the usual heads of sizes 128/128, a smaller group, and no group. On the CPU only the shape of
// `tools/quickstart` is measured. `quick` gives one small case.
std::vector<BenchCase> benchCases(bool cuda, bool quick);

// Returns a spec of the whole forward pass with the numbers of heads that the paper of NSA has.
Spec usualForward(int32_t qkDim);

// One sequence of `tokens` tokens, all of them queries.
BenchCase promptCase(std::string name, const Spec &spec, int64_t tokens);

// Draws the inputs of a case, with sequences of the greatest lengths, but not what gradients take from the forward pass
// (tools::addSaved).
tools::OperatorInputs drawInputs(const BenchCase &benchCase);

// Returns the indices of the queries whose results are compared with exact results. The results of the first and the
// last query are always compared. The number of chosen queries is 131072 divided by the number of keys of a query, but
// at least 4 and at most 64.
std::vector<int64_t> checkedQueries(const Spec &spec, const Maxima &maxima);

nlohmann::ordered_json caseFields(const BenchCase &benchCase);

// The peak rates of a device: how many operations of dense matrix products of one type it does in a second, and how
// many bytes it moves between memory and processor in a second.
struct Roof {
  double tflops = 0;
  double terabytesPerSecond = 0;
};
// Returns the measured peak rates of a device, or nullopt for a device on which they were not measured.
std::optional<Roof> roofOf(const std::string &deviceName, DType dtype);
// Measures the peak rates of the processor with all its cores.
Roof processorRoof();
// Returns the least possible time of a case, which is the longer of two times: the time of computing exactly the
// attended products, and the time of moving every tensor once through memory.
double floorMs(const BenchCase &benchCase, double flops, const Roof &roof);

} // namespace nsa::bench
