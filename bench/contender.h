// A contender in the measurement of one shape: a plan of this library, or another implementation on the same device.
// The contenders run in turns, and each round has another order, so that clocks and temperature favour none of them. A
// contender that always followed a contender of low power would find a rested GPU, which is 3 to 9 % faster for a tenth
// of a second.
// Thread-safety: one thread uses a Contender.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::bench {

class Contender {
public:
  virtual ~Contender() = default;
  // "nsa default", "nsa tuned", "torch flash", ...
  virtual const std::string &name() const = 0;
  // Milliseconds of one run. On a GPU each run begins with a cold L2. The contender's result was checked before.
  virtual Result<double> sample() = 0;
  // What a report says of a contender beside its times: template, config, registers, error.
  virtual nlohmann::ordered_json facts() const = 0;
};

struct Times {
  double fastestMs = 0, medianMs = 0, slowestMs = 0;
  // Median CPU time of this process, over all threads. The CPU time of other processes is not counted.
  double cpuMs = 0;
};

// Measures `samples` rounds. In each round every contender runs once, in a random order that is the same in each
// process. A contender that fails leaves the rounds, and its result is the error, so that the times of the other
// contenders are kept.
std::vector<Result<Times>> measureInTurns(const std::vector<Contender *> &contenders, int samples);

} // namespace nsa::bench
