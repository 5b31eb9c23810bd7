// Who could have written a file of sqlite's. Thread-safety: pure functions of the file system.
#pragma once

#include <filesystem>
#include <string>

namespace nsa {

// As whyNotTrusted (runtime/base/trust.h), and of the files that lie beside it: sqlite replays a log that it finds
// there, also one that another user made.
std::string whyDatabaseNotTrusted(const std::filesystem::path &path);

} // namespace nsa
