// A contender is one of the implementations that are measured on one shape: a plan of this library, or another
// implementation on the same device. The contenders run in turns, and their order differs in each round, so that clock
// rates and temperature favour none of them. A contender that always ran after a contender of low power would find a
// cooler GPU, which is 3 to 9 % faster for a tenth of a second.
// Thread-safety: only one thread at a time may use a Contender.
#pragma once

#include "runtime/base/status.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::bench {

class Contender {
public:
  virtual ~Contender() = default;
  // The contender's name: "nsa default", "nsa tuned", "torch flash", ...
  virtual const std::string &name() const = 0;
  // Milliseconds of one run. On a GPU each run begins with a cold L2. The contender's result was checked before its
  // time is measured.
  virtual Result<double> sample() = 0;
  // The fields that a report shows about a contender in addition to its times: template, config, registers, error.
  virtual nlohmann::ordered_json facts() const = 0;
};

struct Times {
  double fastestMs = 0, medianMs = 0, slowestMs = 0;
  // Median CPU time of this process, over all threads. The CPU time of other processes is not counted.
  double cpuMs = 0;

  // The fields of a result row: median_ms, fastest_ms, slowest_ms.
  nlohmann::ordered_json fields() const;
};

// Returns pointers to the contenders of several lists, in the order of the lists.
template <typename... Lists> std::vector<Contender *> allOf(const Lists &...lists) {
  std::vector<Contender *> all;
  (std::ranges::transform(lists, std::back_inserter(all), [](const auto &contender) { return contender.get(); }), ...);
  return all;
}

// Measures `samples` rounds. In each round every contender runs once, in a random order that is the same in each
// process. When a contender fails, it takes part in no further round and its result is the error, so the times of the
// other contenders are kept.
std::vector<Result<Times>> measureInTurns(const std::vector<Contender *> &contenders, int samples);
// Does what measureInTurns does, and fails with the error of the first contender that failed.
Result<std::vector<Times>> measureAll(const std::vector<Contender *> &contenders, int samples);

} // namespace nsa::bench
