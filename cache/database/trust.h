// Finds out whether other users could have written a database file or a pack.
// Thread-safety: trust.h has only pure functions of the file system.
#pragma once

#include <filesystem>
#include <string>

namespace nsa {

// Applies whyNotTrusted (runtime/base/trust.h) to the file and to its journal and log files: sqlite replays a log that
// it finds, even a log that another user made.
std::string whyDatabaseNotTrusted(const std::filesystem::path &path);

} // namespace nsa
