// Finds the length from which on the whole forward pass is faster than dense attention with the same heads. The
// crossover is measured where a workload asks for it (`prefill.crossover`), stored as a route with its times, and shown
// in reports. No engine applies the crossover, because nsa and dense attention compute different results.
// Thread-safety: pure functions, except for measureCrossover, which needs the device for itself.
#pragma once

#include "tools/nsa/stored_choices.h"
#include "tools/nsa/tune_workload.h"
#include "tools/support/engine.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tools {

// The name of the route. The threshold of the crossover is the least length from which on the forward pass was faster.
inline constexpr const char *kCrossoverRoute = "nsa.faster_from";

struct CrossoverJob {
  std::string head; // of the first workload that asks
  Spec spec;        // of nsa in the dense layout
  int64_t batch = 1;
  std::vector<int64_t> lengths; // ascending
  std::string family;           // of the route

  // "nsa128 bf16 1x1024 to 1x65536"
  std::string text() const;
};

// The jobs of all workloads that ask for a crossover, one for each head and type. A workload that is limited to
// operators which take no part does not ask. Where several workloads ask for the same, the job has the lengths of all.
std::vector<CrossoverJob> crossoverJobs(const std::vector<Workload> &workloads);
// The family of the route for a call of nsa.
std::string crossoverFamily(const Spec &spec, int64_t batch);
// Returns whether a stored crossover was measured with this revision of the compiler, at all lengths of the job.
bool answers(const StoredRoute &route, const CrossoverJob &job, const std::string &revision);

struct CrossoverPlace {
  nsa_engine *engine = nullptr;
  std::string device;   // "cpu" or "cuda:0", the engine's
  std::string key;      // of the device, in the store
  std::string revision; // of the compiler
  // Asked between lengths, with the seconds that the next length may take. True ends the measurement.
  std::function<bool(double seconds)> isOver;
};
// An upper bound of the seconds that a measurement at `tokens` takes, by the seconds that `before` tokens took. The
// work of attention grows with the square of the length.
double secondsAt(int64_t tokens, int64_t before, double secondsBefore);
// Measures nsa and dense attention in turns at growing lengths, until the forward pass was faster at two lengths in a
// row. A length that has no room on the device ends the measurement. Returns nullopt if isOver ended the measurement.
Result<std::optional<StoredRoute>> measureCrossover(const CrossoverJob &job, const CrossoverPlace &place);

// The measured crossover, its times and a sentence, for a report.
nlohmann::ordered_json crossoverRecord(const CrossoverJob &job, const StoredRoute *route);

} // namespace nsa::tools
