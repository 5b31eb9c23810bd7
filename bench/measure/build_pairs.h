// Compares the records of two builds that the benches wrote in turns on one machine. The records of round N lie in
// FOLDER/old/N and FOLDER/new/N. A row of a record has a partner in the record of the other build that measures the
// same thing, and the ratio of a round is the new time over the old time. Changes of the machine between two rounds
// affect both builds of a round alike, so the median of the rounds' ratios says more than the ratio of two medians.
// Thread-safety: build_pairs.h has only pure functions.
#pragma once

#include "runtime/base/status.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::bench {

// The records of one round: the content of each JSON file by the name of the file without its ending.
struct BuildRound {
  std::map<std::string, nlohmann::ordered_json> old, fresh;
};

// Reads all rounds of FOLDER in the order of their numbers. Fails if a round has records of one build only.
Result<std::vector<BuildRound>> readRounds(const std::string &folder);

struct BuildPairs {
  nlohmann::ordered_json facts; // "machine" of the new build, "old" and "new": the commits, "rounds"
  // record, what, unit, old and new (medians of the rounds), ratio (median of the rounds' ratios), least, greatest
  std::vector<nlohmann::ordered_json> rows;
};

// Fails if two records of one build have different commits, if two records have different devices, or if no row has a
// partner. Rows and records that only one build has are left out; `facts` counts them ("unpaired").
Result<BuildPairs> pairBuilds(const std::vector<BuildRound> &rounds);

} // namespace nsa::bench
