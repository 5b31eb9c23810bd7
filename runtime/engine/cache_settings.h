// Which files an engine's kernels come from, by its options.
// Thread-safety: pure functions of the file system.
#pragma once

#include "runtime/engine/kernel_cache.h"
#include "runtime/engine/options.h"

#include <string>
#include <vector>

namespace nsa {

// Every *.nsapack of a folder, by name; none when there is no such folder.
std::vector<std::string> packsIn(const std::string &folder);
// Where packs are installed: share/nsa/packs beside the folder that holds this library.
std::string installedPackFolder();

// Of resolved options. The error names the option, or the key file that cannot be used where a signature is required;
// without the requirement that is a line of `warnings`.
Result<CacheSettings> settingsOf(const EngineOptions &options, std::vector<std::string> &warnings);

} // namespace nsa
