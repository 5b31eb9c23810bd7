// Finds the files from which an engine takes stored kernels, as the engine's options name them.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/engine/choices/kernel_cache.h"
#include "runtime/engine/options/options.h"

#include <string>
#include <vector>

namespace nsa {

// Splits a text such as the option cache_packs or cache_keys at ':' into the names of files. `field` is the name of the
// option, which the error of a malformed list states.
Result<std::vector<std::string>> splitPaths(const std::string &field, const std::string &text);
// Returns the paths of all *.nsapack files of a folder, ordered by name. packsIn returns no path when the folder does
// not exist.
std::vector<std::string> packsIn(const std::string &folder);
// Returns the folder where packs are installed: ../share/nsa/packs, seen from the folder of this library.
std::string installedPackFolder();

// Returns the settings of the kernel cache that the options give. `options` must be resolved options. The error of an
// invalid setting names the option. If a key file cannot be used and a signature is required, settingsOf returns an
// error. If a key file cannot be used and no signature is required, settingsOf adds a line about the key file to
// `warnings`.
Result<CacheSettings> settingsOf(const EngineOptions &options, std::vector<std::string> &warnings);

} // namespace nsa
