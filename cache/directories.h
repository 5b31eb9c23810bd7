// The folder of a store's file: made when it is missing. Thread-safety: pure functions of the file system.
#pragma once

#include <filesystem>
#include <string>

namespace nsa {

// Missing directories get mode 0700: who can write here can make this process run his code. False: `reason` says why.
bool makeDirectories(const std::filesystem::path &directory, std::string &reason);

// What makeDirectories or sqlite would fail with, found without making anything; "" when nothing is in the way.
std::string whyNotMade(const std::filesystem::path &directory);

} // namespace nsa
