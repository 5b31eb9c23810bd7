// Whoever takes part in the measurement of one shape: a plan of ours, or another implementation on the same device.
// Samples of all are taken in turns, each round in another order, so that clocks and temperature favour nobody: who
// always comes after one that draws little power runs on a rested GPU, 3 to 9 % faster over a tenth of a second.
// Thread-safety: one thread.
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
  // Milliseconds of one run, begun with a cold L2 on a GPU. Its result has been checked before.
  virtual Result<double> sample() = 0;
  // What is to be told of it beside its times: template, config, registers, error.
  virtual nlohmann::ordered_json facts() const = 0;
};

struct Times {
  double fastestMs = 0, medianMs = 0, slowestMs = 0;
  // Median of this process's CPU time, all threads together: neighbours on the processor cost none of it.
  double cpuMs = 0;
};

// `samples` rounds in each of which every contender runs once, in random order (the same in each process). One that
// fails leaves the turns, and its error stands for its times: the others' must not be lost with it.
std::vector<Result<Times>> measureInTurns(const std::vector<Contender *> &contenders, int samples);

} // namespace nsa::bench
