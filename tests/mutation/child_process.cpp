#include "tests/mutation/child_process.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <thread>

extern char **environ;

namespace nsa::mutation {
namespace {

constexpr mode_t kMode = 0600;
constexpr std::chrono::milliseconds kPoll{20};

std::vector<std::string> environmentOf(const Child &child) {
  std::vector<std::string> entries;
  for (char **entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    const bool isRemoved = !child.removedPrefix.empty() && name.starts_with(child.removedPrefix);
    if (!isRemoved && !child.environment.contains(name))
      entries.emplace_back(text);
  }
  for (const auto &[name, value] : child.environment)
    entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char *> pointersTo(std::vector<std::string> &texts) {
  std::vector<char *> pointers;
  for (std::string &text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

} // namespace

Result<ChildEnd> runChild(const Child &child) {
  std::vector<std::string> words = {child.program}, entries = environmentOf(child);
  words.insert(words.end(), child.arguments.begin(), child.arguments.end());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, child.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, kMode);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  pid_t process = 0;
  const int error = posix_spawn(&process, child.program.c_str(), &actions, nullptr, pointersTo(words).data(),
                                pointersTo(entries).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return Status::error(ErrorCode::kIoError, child.program + " cannot be started: " + std::strerror(error));

  ChildEnd end;
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (!end.isHung && elapsed() > child.limitSeconds) {
      end.isHung = true;
      kill(process, SIGKILL);
    }
    std::this_thread::sleep_for(kPoll);
  }
  end.seconds = elapsed();
  end.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return end;
}

} // namespace nsa::mutation
