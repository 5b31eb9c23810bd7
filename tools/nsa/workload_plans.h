// Single plans, as a workload lists them and as a program's record holds them (runtime/engine/plan_record.h): the
// operator, the maxima and the configuration of one call of nsa_plan_create.
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace nsa::tools {

struct PlannedCall {
  Spec spec;
  Maxima maxima;

  // "64/4x192/128": query and key/value heads and their sizes, of which an operator may have none.
  std::string headsText() const;
};

// The list of a workload's "plans". Errors name the file, the place in it, the value and the rule.
Result<std::vector<PlannedCall>> readPlans(const nlohmann::json &list, const std::string &file);

// Whether a text is a record: its first line begins with {"op".
bool isPlanRecord(std::string_view text);

struct ReadRecord {
  std::vector<PlannedCall> plans; // each once, in the order of the lines
  std::vector<std::string> cut;   // a sentence for each line that ends too early: those are passed over
};
// A line of a record that was cut off, as by a full disk, holds no plan; any other line that is none is an error, which
// names file and line.
Result<ReadRecord> readRecord(std::string_view text, const std::string &file);

} // namespace nsa::tools
