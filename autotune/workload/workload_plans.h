// Reads plans from a workload file, or from the record in which the runtime notes the plans of a program
// (runtime/engine/plan/plan_record.h). A plan is the operator, the maxima and the configuration of one call of
// nsa_plan_create_with.
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

class JsonFields;

struct PlannedCall {
  Spec spec;
  Maxima maxima;

  // The numbers of query heads and key/value heads, and their sizes: "64/4x192/128". An operator may have none.
  std::string headsText() const;
};

// Returns the spec of the operator that `config` describes, the field "config" of `fields` in the file.
Result<Spec> specIn(const JsonFields &fields, const nlohmann::json &config, const std::string &file, Operator op);

// Reads the list "plans" of a workload file. An error names the file, the JSON path of the field, the value and the
// rule.
Result<std::vector<PlannedCall>> readPlans(const nlohmann::json &list, const std::string &file);

// How many first bytes of a file tell whether it is a program's record.
inline constexpr size_t kPlanRecordBegin = 4096;
// Returns whether `begin`, the first bytes of a file, belongs to a program's record of its plans. isPlanRecord
// recognizes a record by the first line that begins with {"op". Before the first line that begins with {"op", a record
// may only have empty lines and lines that were cut off within the text {"op".
bool isPlanRecord(std::string_view begin);

struct ReadRecord {
  std::vector<PlannedCall> plans; // each once, in the order of the lines
  std::vector<std::string> cut;   // a sentence for each line that ends too early and was skipped
};
// Reads a program's record of its plans. `file` is what errors call it. A record of any size is accepted, because a
// program appends its plans again each time it starts. The length of each line of a record is limited. A line of a
// record that was cut off, for example by a full disk, is skipped. A complete line of a record that describes no plan
// is an error, which names the file and the line.
Result<ReadRecord> readRecord(std::string_view text, const std::string &file);

} // namespace nsa
