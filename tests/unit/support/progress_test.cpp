// The line on a terminal: what a pseudo-terminal receives, and that a pipe receives nothing.
#include "tools/support/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <regex>
#include <string>
#include <thread>
#include <unistd.h>

namespace nsa::tools {
namespace {

class Terminal {
public:
  Terminal() : master(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0)
      user = open(ptsname(master), O_RDWR | O_NOCTTY);
  }
  ~Terminal() {
    close(user);
    close(master);
  }
  bool isThere() const { return user >= 0; }

  // What was written until `text` came, or for some seconds.
  std::string readUntil(const std::string &text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (received.find(text) == std::string::npos && std::chrono::steady_clock::now() < end)
      readSome(100);
    return received;
  }
  std::string readFor(int milliseconds) {
    readSome(milliseconds);
    return received;
  }
  void forget() { received.clear(); }

  const int master;
  int user = -1;

private:
  void readSome(int milliseconds) {
    pollfd ready{master, POLLIN, 0};
    char text[256];
    if (poll(&ready, 1, milliseconds) > 0)
      if (const ssize_t count = read(master, text, sizeof text); count > 0)
        received.append(text, static_cast<size_t>(count));
  }
  std::string received;
};

TEST(Progress, ShowsTheStepAndErasesIt) {
  Terminal terminal;
  if (!terminal.isThere())
    GTEST_SKIP() << "no pseudo-terminals here";
  {
    Progress progress(terminal.user, 0);
    progress.step("tuning window");
    EXPECT_NE(terminal.readUntil("tuning window ... 0 s").find("tuning window ... "), std::string::npos);
    progress.step("checking");
    EXPECT_NE(terminal.readUntil("checking ... ").find("checking ... "), std::string::npos);
    terminal.readFor(50);
    terminal.forget();
  }
  const std::string last = terminal.readUntil("\033[K");
  EXPECT_TRUE(last.ends_with("\r\033[K")) << last;
}

TEST(Progress, SaysHowLongItWillTake) {
  Terminal terminal;
  if (!terminal.isThere())
    GTEST_SKIP() << "no pseudo-terminals here";
  Progress progress(terminal.user, 0);
  progress.step("tuning", 200);
  const std::string line = terminal.readUntil(" left");
  EXPECT_TRUE(std::regex_search(line, std::regex(R"(tuning \.\.\. \d+ s, about 3 min left)"))) << line;
  terminal.forget();
  progress.step("tuning", 0.0);
  EXPECT_NE(terminal.readUntil(" left").find("about 0 s left"), std::string::npos) << "it never counts below nothing";
}

TEST(Progress, DurationsHaveTheirUnit) {
  EXPECT_EQ(durationText(0.4), "0 s");
  EXPECT_EQ(durationText(89), "89 s");
  EXPECT_EQ(durationText(600), "10 min");
  EXPECT_EQ(durationText(5400), "1.5 h");
}

TEST(Progress, IsQuietAtFirstAndWithoutAStep) {
  Terminal terminal;
  if (!terminal.isThere())
    GTEST_SKIP() << "no pseudo-terminals here";
  Progress progress(terminal.user, 3600);
  EXPECT_EQ(terminal.readFor(500), "");
  progress.step("short");
  EXPECT_EQ(terminal.readFor(500), "");
}

TEST(Progress, WritesNothingWhereThereIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    Progress progress(ends[1], 0);
    progress.step("tuning");
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  close(ends[1]);
  char text;
  EXPECT_EQ(read(ends[0], &text, 1), 0);
  close(ends[0]);
}

} // namespace
} // namespace nsa::tools
