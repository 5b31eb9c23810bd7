// Compares the speed of kernels beside plain loops with a record, and says when a kernel has become slow. Tests use it
// to find a change that halves a kernel's speed, on any machine.
// Thread-safety: speed_record.h has only pure functions.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::bench {

// A kernel is slow if it runs below this part of its recorded speed. Speeds on different processors differ by less than
// this part, because the loop beside the kernel uses vectors of the same width.
constexpr double kLeastOfRecord = 0.5;

// Compares two records of a bench: "machine", and rows with "op", "features" and "times_plain". The error names every
// kernel of `measured` that is slow by `record`, or that `record` does not have. `path` is the record's file.
Status compareWithRecord(const nlohmann::ordered_json &measured, const nlohmann::ordered_json &record,
                         const std::string &path);
// Compares with a record that is read from a file. A file that is no record, or that was written by a build of
// uncommitted changes, is an error.
Status compareWithRecord(const nlohmann::ordered_json &measured, const std::string &path);

} // namespace nsa::bench
