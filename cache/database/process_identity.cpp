#include "cache/database/process_identity.h"

#include "runtime/base/digest.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <unistd.h>

namespace nsa {

namespace {

struct ProcessState {
  char state = 0;
  int64_t started = 0;
};

// proc(5), /proc/pid/stat: the name in parentheses may hold anything, so fields are counted from the last one.
std::optional<ProcessState> readState(int64_t pid) {
  constexpr int kStateField = 3, kStartField = 22;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line))
    return std::nullopt;
  size_t nameEnd = line.rfind(')');
  if (nameEnd == std::string::npos)
    return std::nullopt;
  std::istringstream fields(line.substr(nameEnd + 1));
  ProcessState result;
  fields >> result.state;
  std::string skipped;
  for (int field = kStateField + 1; field < kStartField; ++field)
    fields >> skipped;
  fields >> result.started;
  return fields ? std::optional(result) : std::nullopt;
}

// A digest, because the file may be given away and must not tell on which machine it was written.
std::string readHost() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::error_code error;
  std::string space = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  if (!std::getline(file, boot) || boot.empty() || error)
    return "";
  return Digest().field(boot).field(space).finishHex();
}

} // namespace

ProcessIdentity ProcessIdentity::ofThis() {
  ProcessIdentity identity{readHost(), getpid(), 0};
  if (std::optional<ProcessState> state = readState(identity.pid))
    identity.started = state->started;
  else
    identity.host.clear();
  return identity;
}

bool hasEnded(const ProcessIdentity &process) {
  if (process.pid <= 0 || process.pid > std::numeric_limits<pid_t>::max())
    return true; // no process has such a number: the row is damaged
  // The file may be hidden from other users, so that its absence says nothing.
  if (kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH)
    return true;
  std::optional<ProcessState> state = readState(process.pid);
  return state && (state->state == 'Z' || state->state == 'X' || state->started != process.started);
}

} // namespace nsa
