// What a record says of the speed of kernels beside plain loops, and when a kernel has become slow by it: a change that
// costs half of a kernel's speed is to be seen by the tests, whatever machine they run on.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::bench {

// A kernel is slow below this part of its recorded speed. Processors differ by less, as the loop beside the kernel has
// vectors of the same width.
constexpr double kLeastOfRecord = 0.5;

// The records are what a bench has written: "machine" and rows with "op", "features" and "times_plain". An error names
// every kernel of `measured` that is slow by `record`, or that the record does not know; `path` is the record's file.
Status compareWithRecord(const nlohmann::ordered_json &measured, const nlohmann::ordered_json &record,
                         const std::string &path);
// Reads the record first. An error where it is no record, or was written by a build of uncommitted changes.
Status compareWithRecord(const nlohmann::ordered_json &measured, const std::string &path);

} // namespace nsa::bench
