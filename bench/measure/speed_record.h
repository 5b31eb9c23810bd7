// Compares the measured speeds of kernels, each relative to a plain loop, with recorded speeds, and says when a kernel
// has become slow. A test compares the speeds of kernels with the recorded speeds, to find a change of the code that
// halves a kernel's speed.
// Thread-safety: speed_record.h has only pure functions.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::bench {

// A kernel counts as slow if its speed is below half of its recorded speed. Speeds are relative to a plain C++ loop
// that uses vectors of the same width, so the same kernel's speed differs by less than a factor of two between
// processors.
constexpr double kLeastOfRecord = 0.5;

// Compares two results of one bench, each with the field "machine" and rows with the fields "op", "features" and
// "times_plain". The error names every kernel of `measured` that is slow compared with `record`, or that `record` does
// not list. `path` is the record's file.
Status compareWithRecord(const nlohmann::ordered_json &measured, const nlohmann::ordered_json &record,
                         const std::string &path);
// Compares the measured speeds with a record that is read from a file. A file that is no record, or that was written by
// a build of uncommitted changes, is an error.
Status compareWithRecord(const nlohmann::ordered_json &measured, const std::string &path);

} // namespace nsa::bench
