// Makes the folder of a store's file when it is missing.
// Thread-safety: pure functions of the file system.
#pragma once

#include <filesystem>
#include <string>

namespace nsa {

// Makes missing directories with mode 0700, because any user who can write there could make this process run foreign
// code. Returns false on failure, and `reason` says why.
bool makeDirectories(const std::filesystem::path &directory, std::string &reason);

// Why makeDirectories or sqlite would fail, found without making anything. "" when they would succeed.
std::string whyNotMade(const std::filesystem::path &directory);

} // namespace nsa
