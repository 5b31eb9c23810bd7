#include "runtime/engine/compile/library_place.h"

#include "runtime/base/trust.h"

#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <system_error>
#include <unistd.h>

namespace nsa {

namespace fs = std::filesystem;

LibraryPlace LibraryPlace::of(const void *address) {
  LibraryPlace place;
  Dl_info info{};
  link_map *map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP) == 0 || !info.dli_fname)
    return place;
  std::error_code error;
  // A program is named as it was called, which need not be a path.
  const bool isProgram = map && map->l_name && *map->l_name == '\0';
  const fs::path real = fs::canonical(isProgram ? "/proc/self/exe" : info.dli_fname, error);
  if (error)
    return place;
  fs::path folder = real.parent_path();
  if (isProgram) {
    folder = (folder / NSA_LIBRARIES_FROM_PROGRAMS).lexically_normal();
  } else {
    const fs::path reached = fs::absolute(info.dli_fname, error).parent_path();
    const fs::path way = fs::canonical(reached, error);
    if (!error && (way == folder || whyFolderNotTrusted(way).empty()))
      place.folders.push_back(reached.string());
  }
  if (place.folders.empty() || folder != place.folders.front())
    place.folders.push_back(folder.string());
  return place;
}

const LibraryPlace &LibraryPlace::own() {
  static const char here = 0; // in this library, or in a program that this is part of
  static const LibraryPlace &place = *new LibraryPlace(of(&here)); // threads may ask until the process ends
  return place;
}

// The loader runs this before any function of the library can be called.
[[maybe_unused]] static const LibraryPlace &foundWhenLoaded = LibraryPlace::own();

std::string LibraryPlace::find(const std::string &relative) const {
  for (const std::string &folder : folders)
    if (std::string path = folder + "/" + relative; access(path.c_str(), F_OK) == 0)
      return path;
  return (folders.empty() ? "" : folders.front() + "/") + relative;
}

} // namespace nsa
