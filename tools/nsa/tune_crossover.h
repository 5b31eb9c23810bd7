// From which length on the whole forward pass is faster than dense attention of the same heads: measured where a
// workload asks for it (`prefill.crossover`), stored as a route with its times and told in reports. Never applied: the
// two are different mathematics.
// Thread-safety: pure functions, but for measureCrossover, which has the device for itself.
#pragma once

#include "tools/nsa/stored_choices.h"
#include "tools/nsa/tune_workload.h"
#include "tools/support/engine.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tools {

// Name of the route; its threshold is the least length from which on the forward pass was the faster one.
inline constexpr const char *kCrossoverRoute = "nsa.faster_from";

struct CrossoverJob {
  std::string head; // of the first workload that asks
  Spec spec;        // of nsa, in the dense layout
  int64_t batch = 1;
  std::vector<int64_t> lengths; // ascending
  std::string family;           // of the route

  // "nsa128 bf16 1x1024 to 1x65536"
  std::string text() const;
};

// Of each head and type whose workload asks for it, and is not limited to operators that take no part; where several
// ask the same, over all their lengths.
std::vector<CrossoverJob> crossoverJobs(const std::vector<Workload> &workloads);
// The route's family of a call of nsa.
std::string crossoverFamily(const Spec &spec, int64_t batch);
// Whether a stored answer is this compiler's, and of all these lengths.
bool answers(const StoredRoute &route, const CrossoverJob &job, const std::string &revision);

struct CrossoverPlace {
  nsa_engine *engine = nullptr;
  std::string device;   // "cpu" or "cuda:0", the engine's
  std::string key;      // of the device, in the store
  std::string revision; // of the compiler
  // Asked between lengths, with the seconds that the next one may take.
  std::function<bool(double seconds)> isOver;
};
// What measuring at a length may take at most, after another one took so long: attention's work grows by the square.
double secondsAt(int64_t tokens, int64_t before, double secondsBefore);
// Both in turns, at growing lengths, until the forward pass was the faster one at two in a row. A length that has no
// room on the device ends it; nothing stands for a measurement that isOver has ended.
Result<std::optional<StoredRoute>> measureCrossover(const CrossoverJob &job, const CrossoverPlace &place);

// For a report: the answer, its times, and a sentence.
nlohmann::ordered_json crossoverRecord(const CrossoverJob &job, const StoredRoute *route);

} // namespace nsa::tools
