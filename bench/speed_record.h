// Compares the measured speeds of kernels, each relative to a plain loop, with recorded speeds, and says when a kernel
// has become slow. Tests compare speeds with a record to find a change that halves a kernel's speed, on any machine.
// Thread-safety: speed_record.h has only pure functions.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::bench {

// A kernel counts as slow if it runs at less than this fraction of its recorded speed. A kernel's speed relative to the
// plain loop differs between processors by less than this fraction, because the loop uses vectors of the same width as
// the kernel.
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
