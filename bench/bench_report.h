// The results of one run of the bench, as JSON for tools and CSV for people, in a folder of their own.
// Thread-safety: one thread.
#pragma once

#include "bench/bench_case.h"
#include "bench/fma_peak.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::bench {

class BenchReport {
public:
  BenchReport(nlohmann::json machine, const FmaPeak &peak);

  // `kind`: "default" (the compiler's best guess) or "tuned".
  void add(const BenchCase &benchCase, const std::string &kind, const BenchResult &result);
  // attention.json and attention.csv; makes the folder.
  Status write(const std::string &folder) const;

private:
  nlohmann::ordered_json json;
};

} // namespace nsa::bench
