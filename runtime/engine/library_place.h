// Finds the folder of a loaded library, because the compiler library and packs are installed beside it. LibraryPlace
// may also be linked into a program, such as the command line; the place of a program is the folder where the program's
// tree has its libraries.
// Thread-safety: immutable.
#pragma once

#include <string>
#include <vector>

namespace nsa {

class LibraryPlace {
public:
  // Returns the place of the file that holds `address`. A relative path that the loader was given is completed by the
  // present working directory.
  static LibraryPlace of(const void *address);
  // Returns the place of the file that holds this code. The place is found when the code is loaded, because the host
  // may change its working directory later.
  static const LibraryPlace &own();

  // Returns the path `relative` to the folder through which the library was reached. If the library was reached through
  // a link and nothing exists beside the link, `find` returns the path relative to the folder of the library's file
  // itself. If nothing exists beside the link or the library's file, `find` returns the path beside the link. The
  // folder of a link does not count where other users may write: code of the file's own folder runs already, but beside
  // a link in /tmp any user may put a file.
  std::string find(const std::string &relative) const;

private:
  std::vector<std::string> folders; // in the order of the search; empty: unknown
};

} // namespace nsa
