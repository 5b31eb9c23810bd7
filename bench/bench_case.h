// Which shapes a device is measured on, and the least time in which it could serve one.
// Thread-safety: pure functions.
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

// Window, compressed and dense attention with the NSA paper's heads, the usual 128/128 ones, a smaller group and none,
// from a short to a long length; on the CPU the shape of `tools/quickstart`. `quick` is one small case.
std::vector<BenchCase> benchCases(bool cuda, bool quick);

// One sequence of so many tokens, all of them queries.
BenchCase promptCase(std::string name, const Spec &spec, int64_t tokens);

// Some queries, the first and the last among them, stand for all where results are compared with exact ones: the fewer,
// the more keys each sees, about 131072 keys in all, but 4 to 64 queries.
std::vector<int64_t> checkedQueries(const Spec &spec, const Maxima &maxima);

// The fields of a row of results that say what was computed.
nlohmann::ordered_json caseFields(const BenchCase &benchCase);

// What the device can do at most: dense products of the type, and bytes between memory and processor.
struct Roof {
  double tflops = 0;
  double terabytesPerSecond = 0;
};
// Of the devices whose roof was measured; nothing for others.
std::optional<Roof> roofOf(const std::string &deviceName, DType dtype);
// Whichever is longer: exactly the attended products, or every tensor once through memory.
double floorMs(const BenchCase &benchCase, double flops, const Roof &roof);

} // namespace nsa::bench
