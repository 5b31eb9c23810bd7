// Checks that only root and this process's user can have written a file. Kernels are code, and so are the libraries
// that make them, so a file that another user owns or may write is neither read nor opened. The folders on the path of
// a file are checked as strictly as the file, because a user who may write a folder can put another file or folder in
// its place.
//
// The rule of trust is that of sshd: everything from the root to the file belongs to root or to this process's user,
// and neither its group nor everyone may write it. A file that its group may write is refused even when it is the
// user's own group, because the members of a group are not known. If a file has an access control list, the permission
// bits of its group are the mask of the list, so the check covers the list too. Unlike sshd, the library accepts a
// folder with the sticky bit (/tmp) on the way to a file: in a sticky folder only the owner of an entry can rename it.
// The file's own folder must not be sticky, because another user could make a new file in it, for example a log beside
// a database.
//
// Folders are checked from the root down. Once all folders of a path have passed the check, only root and this user can
// change where the path leads, so a file may afterwards be opened or made by its path. A missing folder is not trusted,
// because another user might make the folder meanwhile. A missing file is trusted, because only root and this user can
// make a file in a trusted folder.
//
// The functions of trust.h take paths that are absolute and free of links (realpath); `followLinks` alone takes any
// path. All functions of trust.h except followLinks refuse every symbolic link. followLinks resolves each link that
// leads to a file, so a link that is left leads to no file or was made after followLinks ran. The functions
// whyNotTrusted, whyFolderNotTrusted and whyFileNotTrusted return "" for a trusted path, or else the reason why the
// path is not trusted. Each reason is worded to follow a colon in an error message.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include <string>
#include <sys/stat.h>

namespace nsa {

// Checks the file and all folders on its path.
std::string whyNotTrusted(const std::string &path);

// Follows the links of a path to its file. Each symbolic link that is followed is checked like a file: its owner, its
// folder, and the folders above. Only root and this user can change where an accepted path leads.
struct FollowedPath {
  std::string file;  // absolute and free of links; "": there is none
  std::string fault; // why the file, or a link to it, is not trusted
  int error = 0;     // errno where there is no file, or where it cannot be examined
};
FollowedPath followLinks(const std::string &path);

// Checks only the folders, from the root to `folder`.
std::string whyFolderNotTrusted(const std::string &folder);

// Checks only the file and not its folder. The caller must have checked that the folder is trusted. `facts` is the
// result of fstat for a file that is already open.
std::string whyFileNotTrusted(const std::string &path);
std::string whyFileNotTrusted(const std::string &path, const struct stat &facts);

} // namespace nsa
