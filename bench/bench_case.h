// The shapes that a device is measured on, and the least time that each must take.
// Thread-safety: bench_case.h has only pure functions.
#pragma once

#include "runtime/base/problem.h"

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

// Window, compressed and dense attention from a short to a long length, with four kinds of heads: the heads of the NSA
// paper, the usual heads of sizes 128/128, a smaller group, and no group. On the CPU the only shape is the shape of
// `tools/quickstart`. `quick` gives one small case.
std::vector<BenchCase> benchCases(bool cuda, bool quick);

// One sequence of `tokens` tokens, all of them queries.
BenchCase promptCase(std::string name, const Spec &spec, int64_t tokens);

// The queries whose results are compared with exact results. The first and the last query are always compared. The more
// keys each query sees, the fewer queries are compared: their keys are about 131072 in all, and the queries 4 to 64.
std::vector<int64_t> checkedQueries(const Spec &spec, const Maxima &maxima);

// Returns the fields of a row of results that say what was computed.
nlohmann::ordered_json caseFields(const BenchCase &benchCase);

// The peak rates of a device: dense products of a type, and bytes between memory and processor.
struct Roof {
  double tflops = 0;
  double terabytesPerSecond = 0;
};
// Returns the measured peak rates of a device, or nullopt for a device on which they were not measured.
std::optional<Roof> roofOf(const std::string &deviceName, DType dtype);
// Returns the least possible time of a case: the time of exactly the attended products, or the time of moving every
// tensor once through memory, whichever is longer.
double floorMs(const BenchCase &benchCase, double flops, const Roof &roof);

} // namespace nsa::bench
