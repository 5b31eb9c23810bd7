// Creates the folder of a store's database file if the folder is missing, tells what this process may do with files and
// folders, and tells whether other users could have written a database file or a pack.
// Thread-safety: directories.h has only pure functions of the file system.
#pragma once

#include <filesystem>
#include <string>

namespace nsa {

// Makes missing directories with mode 0700, because any user who can write there could make this process run foreign
// code. On failure, makeDirectories returns false and `reason` says why.
bool makeDirectories(const std::filesystem::path &directory, std::string &reason);

// Returns why makeDirectories or sqlite would fail, without creating any directory or file. "" when they would succeed.
std::string whyNotMade(const std::filesystem::path &directory);

// Whether this process may use a file or folder in all the ways of `mode` (R_OK, W_OK, X_OK). mayAccess checks the
// rights of the process's effective user, because opening a file depends on these rights. mayAccess does not call
// access(2), because access(2) checks the rights of the process's real user. If mayAccess returns false, errno says
// why.
bool mayAccess(const std::filesystem::path &path, int mode);

// Applies whyNotTrusted (runtime/base/trust.h) to the file and to its journal and log files: sqlite replays a log that
// it finds, even a log that another user made.
std::string whyDatabaseNotTrusted(const std::filesystem::path &path);

} // namespace nsa
