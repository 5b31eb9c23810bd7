// Says which files of a folder of templates are templates. The compiler reads these files, and the runtime watches them
// for changes.
// Thread-safety: isTemplatePath is a pure function.
#pragma once

#include <filesystem>

namespace nsa {

// `relative` is a path below the folder, such as "tile/attention.tile". Files that are no templates, such as a README
// or a copy that an editor left, are ignored.
inline bool isTemplatePath(const std::filesystem::path &relative) {
  const std::filesystem::path folder = *relative.begin(), extension = relative.extension();
  return (folder == "tile" && extension == ".tile") || (folder == "cuda" && extension == ".cu") ||
         (folder == "header" && extension == ".inc") || (folder == "device" && extension == ".cuh");
}

} // namespace nsa
