// Who could have written a file. Kernels are code, and so are the libraries that make them: a file that somebody else
// owns or may write is neither read nor opened. The folders on the way to it count as much, because another file, or
// another folder, can be put in its place there.
//
// The rule is sshd's: everything from the root to the file belongs to root or to this process's user, and neither its
// group nor everyone may write it. A group counts even when it is the user's own: its members are not known here. Where
// there is an access list, the bits of the group are its mask, so lists are covered. Other than for sshd, a folder with
// the sticky bit (/tmp) may lie on the way: only the owner of what is in it can rename that. The file's own folder may
// not be one, because a new file may be made there, as a log beside a database.
//
// Folders are judged from the root down. Once they were found good, only root and this user can change where the path
// leads, so a file may be opened, or made, by its path afterwards. A folder that is missing is therefore a fault:
// another user might make it meanwhile. A file that is missing is none.
//
// But for those that `followLinks` takes, paths are absolute and free of links (realpath); a link that is met was made
// meanwhile or leads nowhere, and is refused. The results are "" or the reason, in words that follow a colon.
// Thread-safety: pure functions of the file system.
#pragma once

#include <string>
#include <sys/stat.h>

namespace nsa {

// The file and the way to it.
std::string whyNotTrusted(const std::string &path);

// The file that a path leads to when its links are followed. Each link on the way is judged as a file is: its owner,
// the folder that it is in, and the way to that folder. So only root and this user can change where the path leads.
struct FollowedPath {
  std::string file;  // absolute and free of links; "": there is none
  std::string fault; // why the file, or a link to it, is not trusted
  int error = 0;     // errno where there is no file, or it cannot be looked at
};
FollowedPath followLinks(const std::string &path);

// The way alone: the folders from the root to the one that the file is in.
std::string whyFolderNotTrusted(const std::string &folder);

// The file alone, in a folder that is trusted; by its name, or of one that is open.
std::string whyFileNotTrusted(const std::string &path);
std::string whyFileNotTrusted(const std::string &path, const struct stat &facts);

} // namespace nsa
