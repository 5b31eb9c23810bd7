// Finds out whether other users could have written a database file or a pack.
// Thread-safety: trust.h has only pure functions of the file system.
#pragma once

#include <filesystem>
#include <string>

namespace nsa {

// Asks whyNotTrusted (runtime/base/trust.h) about the file and the files beside it: sqlite replays a log that it finds
// beside a file, even a log that another user made.
std::string whyDatabaseNotTrusted(const std::filesystem::path &path);

} // namespace nsa
