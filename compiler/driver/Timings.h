// The time in milliseconds of each step of one compile. Compile times are shown to people only; no manifest and no
// digest contains them. Thread-safety: a Timings object belongs to one compile.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace nsa {

class Timings {
public:
  // Adds the time since the previous call of lap(), or since construction, to the time of `step`.
  void lap(const char *step) {
    const Clock::time_point now = Clock::now();
    const double milliseconds = std::chrono::duration<double, std::milli>(now - last).count();
    char entry[64];
    snprintf(entry, sizeof entry, "%s%s=%.3f", report.empty() ? "" : " ", step, milliseconds);
    report += entry;
    last = now;
  }
  // "render=0.100 passes=3.012 ..."
  const std::string &text() const { return report; }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last = Clock::now();
  std::string report;
};

} // namespace nsa
