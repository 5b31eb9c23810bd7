// Finds the folder of a loaded library, because the compiler library and packs are installed beside it. This code may
// also be linked into a program, such as the command line; then the folder is where that program's tree has its
// libraries.
// Thread-safety: immutable.
#pragma once

#include <string>
#include <vector>

namespace nsa {

class LibraryPlace {
public:
  // The place of the file that holds `address`. If the loader was given a relative path, the present working directory
  // completes it.
  static LibraryPlace of(const void *address);
  // The place of the file that holds this code. It was found when the code was loaded, because the host may change its
  // working directory later.
  static const LibraryPlace &own();

  // Returns the path `relative` to the folder through which the library was reached. If that does not exist and the
  // library was reached through a link, returns the path relative to the folder of the file itself. If neither exists,
  // returns the first of the two paths. The folder of a link does not count where other users may write: code of the
  // file's own folder runs already, but beside a link in /tmp any user may put a file.
  std::string find(const std::string &relative) const;

private:
  std::vector<std::string> folders; // in the order of the search; empty: unknown
};

} // namespace nsa
