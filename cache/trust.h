// Who could have written a file. Kernels are code: a file that anyone may write, or that belongs to somebody else, is
// not run. Its directory counts as much, because who may write there puts another file in its place.
// Thread-safety: pure functions of the file system.
#pragma once

#include <filesystem>
#include <string>

namespace nsa {

// "" when nobody but root and this process's user could have written it; else the reason, in words that follow a
// colon. A file that is missing yet is judged by its directory. `path` is free of links.
std::string whyNotTrusted(const std::filesystem::path &path);

} // namespace nsa
