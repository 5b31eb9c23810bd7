// Makes packs: the same rows give the same bytes, whatever file they come from and in what order it got them.
// Thread-safety: distinct files may be used from distinct threads.
#pragma once

#include "cache/cache_file.h"
#include "cache/replacing_file.h"
#include "cache/signing_key.h"
#include "runtime/base/digest.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

inline constexpr int kMostCompression = 22; // takes the most time

struct PackRequest {
  std::vector<std::string> operators{}; // only these; empty: all
  std::string device{};                 // only device keys that hold this text; "": all
  bool tunedOnly = false;
  bool isBrief = false; // without the evidence of choices; that of routes stays
  // zstd's level for the kernels, 1 to kMostCompression; 0: as they are stored.
  int compression = 0;
  std::string source{}; // of the library that writes: nsa_source_id
  ReplacingFile::Existing existing = ReplacingFile::Existing::kRefuse;
};

struct PackReport {
  int64_t kernels = 0, choices = 0, routes = 0;
  int64_t bytes = 0;
  Digest::Bytes digest{};
  std::vector<std::string> damaged; // contents that were left out, with the choices that name them
};

// Choices that the request takes, the kernels they name, and routes. The file appears when it is complete.
Result<PackReport> writePack(CacheFile &from, const std::string &path, const PackRequest &request);

// Adds a signature; one that the same key has made stays as it is. A pack in which anything is wrong is not signed, a
// false signature included.
Status signPack(const std::string &path, const SecretKey &key);

} // namespace nsa
