// What `nsa bench` is told of specs and lengths, and what its verbs measure of them. Each writes NAME.json and NAME.csv
// into the folder of results and returns what stands in the first.
// Thread-safety: one thread.
#pragma once

#include "bench/bench_device.h"
#include "bench/peer_process.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace nsa::bench {

struct NamedSpec {
  std::string name;
  Spec spec;
};

struct LengthChoice {
  std::vector<NamedSpec> specs;
  std::vector<int64_t> tokens; // of one sequence, all of them queries
  int samples = 7, warmUps = 3;
  bool tuned = false; // the tuner's winner beside the best guess
  std::string results;
  // Told what is being done, for whoever waits.
  std::function<void(const std::string &)> progress;

  void say(const std::string &verb, const BenchCase &benchCase) const;
};

// The whole forward pass with the time of each part, beside dense attention: the peers', or ours when `peers` is null.
// The fact `crossover` has an entry for each spec: from which length on nsa is the faster one.
Result<nlohmann::ordered_json> benchPrefill(BenchDevice &device, const LengthChoice &choice, PeerProcess *peers);
// Selection alone: lists per second, and the memory that it takes beside the scores that it never writes.
Result<nlohmann::ordered_json> benchSelection(BenchDevice &device, const LengthChoice &choice);
// Compression by all three kinds of phi, against what memory delivers.
Result<nlohmann::ordered_json> benchCompress(BenchDevice &device, const LengthChoice &choice);

} // namespace nsa::bench
