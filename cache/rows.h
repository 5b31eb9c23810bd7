// What a kernel database and a pack hold, as values. docs/cache_format.md has the columns.
// Thread-safety: values.
#pragma once

#include "runtime/base/digest.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

struct StoredKernel {
  std::string content;  // BLAKE2b-256 hex of what produced the binary (source, options, arch, compiler version)
  std::string manifest; // text, see runtime/base/manifest.h
  std::vector<std::byte> binary; // cubin or CPU image, uncompressed here, zstd in the file
};

// One measured candidate, kept as evidence beside the choice.
struct Measurement {
  std::string templateName;
  std::string config;
  std::string outcome;     // "winner", "measured", "rejected", "failed", "pruned"
  double milliseconds = 0; // median; 0 when not measured
  double ratioToIncumbent = 0;
  std::string detail; // error text, max difference, ...
  bool operator==(const Measurement &) const = default;
};

struct StoredChoice {
  std::string problem;    // Problem::key()
  std::string device;     // DeviceKey text
  std::string content;    // the kernel it names
  bool tuned = false;     // false: a default that was never measured
  std::string provenance; // "driver=580.159 nvrtc=13.0 library=..." evidence, never key
  std::vector<Measurement> evidence;
  bool operator==(const StoredChoice &) const = default;
};

// One point of the sweep behind a route.
struct RouteMeasurement {
  int64_t size = 0;    // the length, or whatever the route's name counts
  std::string variant; // the algorithm
  double milliseconds = 0;
  double ratio = 0; // to the other algorithm at this size; 0 when not measured
  std::string detail;
  bool operator==(const RouteMeasurement &) const = default;
};

// A measured threshold between two algorithms.
struct StoredRoute {
  static constexpr int64_t kNever = -1;

  std::string family;         // what is compiled in plus head counts, in words
  std::string device;         // DeviceKey text
  std::string name;           // "window.attention_from"
  int64_t threshold = kNever; // the least size from which the faster algorithm pays; kNever: at no size
  std::string provenance;
  std::vector<RouteMeasurement> evidence; // ascending as it was measured
  bool operator==(const StoredRoute &) const = default;
};

struct KernelSummary {
  std::string content, templateName, op, target, config;
  int64_t compressedBytes = 0, binaryBytes = 0;
  Digest::Bytes digest{}; // as its row says; not compared with the binary
};

// A choice without its evidence, with what its kernel says of itself.
struct ChoiceSummary {
  std::string problem, device, content;
  bool tuned = false;
  std::string target, templateName, config;
  int layer = 0;          // 0: the database; 1 and on: the packs, in order
  Digest::Bytes digest{}; // of the kernel, as in KernelSummary
};

} // namespace nsa
