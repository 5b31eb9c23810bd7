#include "tools/support/progress.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

namespace nsa::tools {
namespace {

constexpr double kQuietSeconds = 2;
constexpr auto kTick = std::chrono::milliseconds(200);
constexpr char kErase[] = "\r\033[K";

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// A line that the terminal breaks could not be erased.
size_t columnsOf(int terminal) {
  winsize size{};
  return ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
}

void write(int to, const std::string &text) {
  // A terminal that has gone away is no reason to stop.
  [[maybe_unused]] const ssize_t written = ::write(to, text.data(), text.size());
}

} // namespace

std::string durationText(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  char text[32];
  if (seconds < 1.5 * kMinute)
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  else if (seconds < 1.5 * kHour)
    std::snprintf(text, sizeof text, "%.0f min", seconds / kMinute);
  else
    std::snprintf(text, sizeof text, "%.1f h", seconds / kHour);
  return text;
}

Progress::Progress() : Progress(STDERR_FILENO, kQuietSeconds) {}

Progress::Progress(int to, double quietSeconds) : to(to), quietSeconds(quietSeconds) {
  if (isatty(to))
    ticker = std::thread([this] { run(); });
}

Progress::~Progress() {
  if (!ticker.joinable())
    return;
  {
    std::lock_guard lock(mutex);
    isOver = true;
    erase();
  }
  changed.notify_one();
  ticker.join();
}

void Progress::step(const std::string &next, std::optional<double> secondsLeft) {
  if (!ticker.joinable())
    return;
  std::lock_guard lock(mutex);
  erase();
  text = next;
  left = secondsLeft;
  begin = seconds();
}

void Progress::erase() {
  if (isShown)
    write(to, kErase);
  isShown = false;
}

void Progress::run() {
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, kTick, [this] { return isOver; })) {
    const double elapsed = seconds() - begin;
    if (text.empty() || elapsed < quietSeconds)
      continue;
    char clock[32];
    std::snprintf(clock, sizeof clock, " ... %.0f s", elapsed);
    std::string line = text + clock;
    if (left)
      line += ", about " + durationText(std::max(*left - elapsed, 0.0)) + " left";
    write(to, kErase + line.substr(0, columnsOf(to)));
    isShown = true;
  }
}

} // namespace nsa::tools
