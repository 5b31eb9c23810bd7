// Runs a command of the shell on a terminal of its own, which is its standard input, output and error.
// Thread-safety: one thread. A test that includes this links the library util.
#pragma once

#include <cstdlib>
#include <gtest/gtest.h>
#include <pty.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace nsa::test {

struct OnTerminal {
  int code = -1;
  std::string text; // with the terminal's "\r\n"
};

inline OnTerminal runOnTerminal(const std::string &command) {
  OnTerminal result;
  int terminal = -1;
  const winsize size{.ws_row = 50, .ws_col = 200, .ws_xpixel = 0, .ws_ypixel = 0};
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  EXPECT_GT(child, 0);
  if (child < 0)
    return result;
  char part[4096];
  // Reading fails with EIO when the last process that has the terminal open has ended.
  for (ssize_t count; (count = read(terminal, part, sizeof part)) > 0;)
    result.text.append(part, static_cast<size_t>(count));
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return result;
}

} // namespace nsa::test
