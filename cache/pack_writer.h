// Makes packs. Equal rows give packs of equal bytes, no matter which file the rows come from and in which order they
// were stored there. Thread-safety: distinct files may be used from distinct threads.
#pragma once

#include "cache/cache_file.h"
#include "cache/database/replacing_file.h"
#include "cache/database/signing_key.h"
#include "runtime/base/digest.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

inline constexpr int kMostCompression = 22; // zstd's slowest level

struct PackRequest {
  std::vector<std::string> operators{}; // only these; empty: all
  std::string device{};                 // only devices whose key contains this text; "": all
  bool tunedOnly = false;               // only tuned choices, and those of kernels that cannot be tuned
  bool isBrief = false;                 // leaves out the evidence of choices; that of routes stays
  // The zstd level with which kernels are compressed, 1 to kMostCompression. 0 leaves the kernels as they are stored.
  int compression = 0;
  std::string source{}; // nsa_source_id of the library that writes
  ReplacingFile::Existing existing = ReplacingFile::Existing::kRefuse;
};

struct PackReport {
  int64_t kernels = 0, choices = 0, routes = 0;
  int64_t bytes = 0;
  Digest::Bytes digest{};
  int64_t unnamed = 0;              // intact kernels that were left out, because no choice in the pack names them
  std::vector<std::string> damaged; // contents of kernels that were left out, with the choices that name them
};

// Writes a pack with the choices and routes that `request` asks for, and with the kernels that the choices name. A new
// pack is written under a temporary name, and gets its file name when it is complete.
Result<PackReport> writePack(CacheFile &from, const std::string &path, const PackRequest &request);

// Adds a signature. If the pack already has a signature by the same key, that signature stays as it is. A pack with any
// fault is not signed, and a false signature is a fault.
Status signPack(const std::string &path, const SecretKey &key);

} // namespace nsa
