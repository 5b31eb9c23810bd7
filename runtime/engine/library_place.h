// Where a loaded library lies, for what is installed beside it: the compiler library, packs. The code may also be part
// of a program, as of the command line: then it is where that program's tree has its libraries. Thread-safety:
// immutable.
#pragma once

#include <string>
#include <vector>

namespace nsa {

class LibraryPlace {
public:
  // Of the file that holds `address`. A relative name that the loader was given is read from the present working
  // directory.
  static LibraryPlace of(const void *address);
  // Of the file that holds this code, found when it was loaded: the host may change its working directory later.
  static const LibraryPlace &own();

  // What stands at `relative` to the folder through which the library was reached, or else, where that is a link, to
  // the folder of the file itself. The first of them when there is none. The folder of a link does not count where
  // others may write: the file's folder holds code that runs already, beside a link in /tmp anyone may put more.
  std::string find(const std::string &relative) const;

private:
  std::vector<std::string> folders; // in the order in which they are looked into; empty: unknown
};

} // namespace nsa
