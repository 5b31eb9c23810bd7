// Says who could have written a file of sqlite.
// Thread-safety: trust.h has only pure functions of the file system.
#pragma once

#include <filesystem>
#include <string>

namespace nsa {

// As whyNotTrusted (runtime/base/trust.h), for the file and for the files beside it: sqlite replays a log that it finds
// there, even one that another user made.
std::string whyDatabaseNotTrusted(const std::filesystem::path &path);

} // namespace nsa
