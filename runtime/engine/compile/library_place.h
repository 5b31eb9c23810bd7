// Finds the folder of a loaded library, because the compiler library and the packs are installed at paths relative to
// this folder. If the code is linked into a program, such as the command line tool, LibraryPlace uses the folder where
// the program's installation has its libraries, for example ../lib relative to the program.
// Thread-safety: immutable.
#pragma once

#include <string>
#include <vector>

namespace nsa {

class LibraryPlace {
public:
  // Returns the folders of the library or program file that is mapped at the memory address `address`. If the loader
  // was given a relative path, the path counts from the present working directory.
  static LibraryPlace of(const void *address);
  // Returns the folders of the library or program that contains this function. LibraryPlace::own is called when the
  // library is loaded, because a relative path of the library has no meaning after the host has changed its working
  // directory.
  static const LibraryPlace &own();

  // Joins the library's folder and the path `relative`. If the library was loaded through a symbolic link, `find` tries
  // the folder of the link first and the folder of the library file second, and returns the first path that exists. If
  // the file exists neither in the folder of the symbolic link nor in the folder of the library file, `find` returns
  // the path in the folder of the link. The folder of the symbolic link is not tried if other users may write into it,
  // because any user could put a file there.
  std::string find(const std::string &relative) const;

private:
  std::vector<std::string> folders; // in the order of the search; empty: unknown
};

} // namespace nsa
