// Finds the sequence length from which on the whole forward pass of NSA is faster than dense attention with the same
// heads. The crossover is measured if a workload asks for it (`prefill.crossover`), is stored in the kernel database
// with the measured times, and is shown in reports. The database stores every threshold as a route, which has a family,
// a device and a name. No engine applies the crossover, because nsa and dense attention compute different results.
// Thread-safety: pure functions, except for measureCrossover, which needs the device for itself.
#pragma once

#include "autotune/tuner/crossover.h"
#include "autotune/workload/stored_choices.h"
#include "autotune/workload/workload.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa {

// The route's name in the kernel database. The route's value is the shortest measured length from which on nsa was
// faster than dense attention at every measured length.
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

// Returns the crossover jobs of all workloads that ask for one: one job for each crossoverFamily, which has the heads,
// the type and the smallest batch. A workload that is limited to operators asks for no crossover if none of them is a
// step of the forward pass. If several workloads ask for a crossover of the same family, there is one job with the
// lengths of all these workloads.
std::vector<CrossoverJob> crossoverJobs(const std::vector<Workload> &workloads);
// Returns the route's family in the kernel database: a text with all fields of `spec` that the crossover depends on,
// and the batch.
std::string crossoverFamily(const Spec &spec, int64_t batch);
// Returns whether the stored crossover `route` was measured with the compiler revision `revision` and at all lengths of
// `job`.
bool answers(const StoredRoute &route, const CrossoverJob &job, const std::string &revision);

// Measures nsa and dense attention in turns at one length of a job, on one device.
using MeasureDuel = std::function<Result<Duel>(const CrossoverJob &job, int64_t tokens)>;

struct CrossoverPlace {
  const MeasureDuel &measure;
  std::string key;      // of the device, in the store
  std::string revision; // of the compiler
  // The callback `isOver` is called before each length is measured, with the seconds that measuring the length may
  // take. True ends the measurement.
  std::function<bool(double seconds)> isOver;
};
// Returns an upper bound of the seconds that a measurement at `tokens` tokens takes, computed from the seconds that a
// measurement at `before` tokens took. The work of attention grows with the square of the length.
double secondsAt(int64_t tokens, int64_t before, double secondsBefore);
// Measures nsa and dense attention in turns at growing lengths, and stops after two consecutive lengths at which nsa
// was faster. A length whose tensors do not fit into the device's memory ends the measurement. Returns nullopt if
// `place.isOver` ended the measurement.
Result<std::optional<StoredRoute>> measureCrossover(const CrossoverJob &job, const CrossoverPlace &place);

// Returns a report's entry about a crossover: the length, the measured times and a sentence that explains them.
nlohmann::ordered_json crossoverRecord(const CrossoverJob &job, const StoredRoute *route);

} // namespace nsa
