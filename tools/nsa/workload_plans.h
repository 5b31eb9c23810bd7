// Single plans, as a workload lists them and as a program's record holds them (runtime/engine/plan_record.h): the
// operator, the maxima and the configuration of one call of nsa_plan_create.
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"
#include "tools/nsa/file_io.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace nsa::tools {

struct PlannedCall {
  Spec spec;
  Maxima maxima;

  // The numbers of query heads and key/value heads, and their sizes: "64/4x192/128". An operator may have none.
  std::string headsText() const;
};

// Reads the list "plans" of a workload file. An error names the file, the JSON path of the field, the value and the
// rule.
Result<std::vector<PlannedCall>> readPlans(const nlohmann::json &list, const std::string &file);

// Returns whether `begin`, the first bytes of a file, belongs to a program's record of its plans. A record has a line
// that begins with {"op". Each line above the first such line is a piece of {"op" that was cut off.
bool isPlanRecord(std::string_view begin);

struct ReadRecord {
  std::vector<PlannedCall> plans; // each once, in the order of the lines
  std::vector<std::string> cut;   // a sentence for each line that ends too early and was skipped
};
// readRecord limits the length of a line and not the size of the record, because a program appends the same lines again
// each time it starts. A line of a record that was cut off, for example by a full disk, is skipped. A complete line of
// a record that describes no plan is an error, which names the file and the line.
Result<ReadRecord> readRecord(const InputFile &file);

} // namespace nsa::tools
