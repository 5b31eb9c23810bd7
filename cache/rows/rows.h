// The C++ structures for the rows of a kernel database and of a pack. docs/cache_format.md describes the columns.
// Thread-safety: values.
#pragma once

#include "runtime/base/digest.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

struct StoredKernel {
  // The content key: BLAKE2b-256, in hexadecimal, of what produced the binary: source, options, architecture, compiler
  // version.
  std::string content;
  std::string manifest;          // a text; see runtime/base/manifest.h
  std::vector<std::byte> binary; // a cubin or a CPU image; uncompressed here, compressed by zstd in the file
};

// The result of one candidate of a tuning, which is stored as evidence for the choice.
struct Measurement {
  std::string templateName;
  std::string config;
  std::string outcome;     // "winner", "measured", "rejected", "failed", "pruned"
  double milliseconds = 0; // median; 0: not measured
  double ratioToIncumbent = 0;
  std::string detail; // error text, max difference, ...
  bool operator==(const Measurement &) const = default;
};

struct StoredChoice {
  std::string problem;    // Problem::key()
  std::string device;     // DeviceKey text
  std::string content;    // the kernel that it names
  bool tuned = false;     // false: a default that was never measured
  std::string provenance; // "driver=580.159 nvrtc=13.0 library=...": says how it was made, and is part of no key
  std::vector<Measurement> evidence;
  bool operator==(const StoredChoice &) const = default;
};

// One measured time of the sweep over sizes by which a route's threshold was found.
struct RouteMeasurement {
  int64_t size = 0;    // a length, or what else the route's name counts
  std::string variant; // the algorithm
  double milliseconds = 0;
  double ratio = 0; // to the other algorithm's time at this size; 0: not measured
  std::string detail;
  bool operator==(const RouteMeasurement &) const = default;
};

struct StoredRoute {
  static constexpr int64_t kNever = -1;

  std::string family;         // what is compiled in and the numbers of heads, in words
  std::string device;         // DeviceKey text
  std::string name;           // "window.attention_from"
  int64_t threshold = kNever; // the size from which on, or up to which, the other way is faster; kNever: at no size
  std::string provenance;
  std::vector<RouteMeasurement> evidence; // in the order of measuring, which is ascending
  bool operator==(const StoredRoute &) const = default;
};

struct KernelSummary {
  std::string content, templateName, op, target, config;
  int64_t compressedBytes = 0, binaryBytes = 0;
  Digest::Bytes digest{}; // as its row says; not checked against the binary
};

// A stored choice without its evidence, together with some fields of the chosen kernel's row.
struct ChoiceSummary {
  std::string problem, device, content;
  bool tuned = false;
  std::string target, templateName, config;
  int layer = 0;          // 0: the database; from 1 on: the packs, in their order
  Digest::Bytes digest{}; // that of the kernel, as in KernelSummary
};

} // namespace nsa
