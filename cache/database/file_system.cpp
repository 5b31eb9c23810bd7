#include "cache/database/file_system.h"

#include <sys/vfs.h>

namespace nsa {

std::string networkFileSystem(uint64_t type) {
  // From linux/magic.h and, of those that are not in it, from their own sources.
  static constexpr struct {
    uint32_t type;
    const char *name;
  } kKnown[] = {
      {0x00006969, "NFS"},    {0x0000517b, "SMB"},    {0xff534d42, "CIFS"},  {0xfe534d42, "SMB2"},
      {0x65735546, "FUSE"},   {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},  {0x00c36400, "Ceph"},
      {0x19830326, "BeeGFS"}, {0x01021997, "9P"},     {0x5346414f, "AFS"},   {0x6b414653, "AFS"},
      {0x73757245, "Coda"},   {0x0000564c, "NCP"},    {0x7461636f, "OCFS2"}, {0x01161970, "GFS2"},
      {0xaad7aaea, "PanFS"},  {0x786f4256, "VBoxSF"},
  };
  for (const auto &known : kKnown)
    if (known.type == (type & 0xffffffff)) // a signed f_type may have been widened
      return known.name;
  return "";
}

std::string networkFileSystemOf(const std::filesystem::path &directory) {
  struct statfs facts{};
  return ::statfs(directory.c_str(), &facts) == 0 ? networkFileSystem(static_cast<uint64_t>(facts.f_type)) : "";
}

} // namespace nsa
