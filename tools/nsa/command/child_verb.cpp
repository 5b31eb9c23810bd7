#include "tools/nsa/command/child_verb.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

namespace nsa::tools {

namespace {

constexpr const char *kThisProgram = "/proc/self/exe";
constexpr mode_t kMode = 0644;

} // namespace

Result<ChildOutcome> runVerb(const ChildVerb &verb) {
  std::vector<std::string> words = {"nsa"};
  words.insert(words.end(), verb.arguments.begin(), verb.arguments.end());
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, verb.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, kMode);
  posix_spawn_file_actions_addopen(&actions, 2, verb.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, kMode);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  const int error = posix_spawn(&child, kThisProgram, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return Status::error(ErrorCode::kIoError, "nsa " + verb.arguments.front() + " with its output in " + verb.output +
                                                  " cannot be started: " + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return Status::error(ErrorCode::kIoError, std::string("waitpid: ") + std::strerror(errno));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return ChildOutcome{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), seconds};
}

} // namespace nsa::tools
