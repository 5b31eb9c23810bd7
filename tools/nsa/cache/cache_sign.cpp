// `nsa cache keygen|sign`: who made a pack.
#include "tools/nsa/cache/cache_verbs.h"

#include "cache/database/signing_key.h"
#include "cache/pack_writer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace nsa::tools {
namespace {

constexpr mode_t kSecretMode = 0600, kPublicMode = 0644;

struct KeygenFlags {
  std::string name;
  bool json = false;
};

struct SignFlags {
  std::string pack, key;
  bool json = false;
};

// Never replaces a file: a lost key cannot be made again.
Status writeNew(const std::string &path, mode_t mode, const std::string &text) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (descriptor < 0)
    return Status::error(ErrorCode::kIoError, "'" + path + "' cannot be made: " + std::strerror(errno),
                         errno == EEXIST ? "a key is never overwritten: name another one" : "");
  const bool isWritten =
      write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(descriptor) == 0;
  const int error = errno;
  close(descriptor);
  if (isWritten)
    return Status::ok();
  unlink(path.c_str());
  return Status::error(ErrorCode::kIoError, "'" + path + "' cannot be written: " + std::strerror(error));
}

Status keygen(const KeygenFlags &flags) {
  const std::string secretPath = flags.name + ".secret", publicPath = flags.name + ".public";
  const SecretKey key = SecretKey::generate();
  NSA_RETURN_IF_ERROR(writeNew(secretPath, kSecretMode, key.text()));
  if (Status status = writeNew(publicPath, kPublicMode, key.publicKey().text()); !status.isOk()) {
    unlink(secretPath.c_str()); // half a pair is of no use
    return status;
  }
  if (flags.json)
    printJson({{"secret", secretPath}, {"public", publicPath}, {"key", key.publicKey().hex()}});
  else
    printText("%s: keep it to yourself; it signs packs\n%s: give it away; it tells packs that you signed (key %s)\n",
              secretPath.c_str(), publicPath.c_str(), key.publicKey().hex().c_str());
  return Status::ok();
}

Status sign(const SignFlags &flags) {
  NSA_ASSIGN_OR_RETURN(SecretKey key, SecretKey::read(flags.key));
  NSA_RETURN_IF_ERROR(signPack(flags.pack, key));
  if (flags.json)
    printJson({{"pack", flags.pack}, {"key", key.publicKey().hex()}});
  else
    printText("%s is signed by %s\n", flags.pack.c_str(), key.publicKey().hex().c_str());
  return Status::ok();
}

} // namespace

void addCacheKeygen(CLI::App &cache, Action &action) {
  auto [verb, flags] = addVerb<KeygenFlags>(
      cache, action, "keygen", "Make a pair of keys: NAME.secret signs packs, NAME.public trusts them", keygen);
  verb.add_option("NAME", flags.name, "The files without their endings")
      ->required()
      ->check([](const std::string &name) {
        return name.empty() || name.back() == '/' ? "'" + name + "' must be the name of a file" : "";
      });
  addJsonFlag(verb, flags.json);
}

void addCacheSign(CLI::App &cache, Action &action) {
  auto [verb, flags] = addVerb<SignFlags>(cache, action, "sign", "Add a signature to a pack", sign);
  verb.add_option("PACK", flags.pack, "The pack")->required();
  addOption(verb, "--key FILE", flags.key, "File of the secret key, as `nsa cache keygen` made it")->required();
  addJsonFlag(verb, flags.json);
}

} // namespace nsa::tools
