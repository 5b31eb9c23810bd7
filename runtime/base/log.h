// A leveled log whose output is the embedder's: one callback, no global state, no formatting library.
// Every part that logs holds a copy of the Logger it was given.
// Thread-safety: a Logger is immutable; its sink is called from any thread and must allow that.
#pragma once

#include "runtime/base/text.h"

#include <functional>
#include <string_view>

namespace nsa {

// The numbers are part of the C ABI (nsa_log_level in nsa/nsa.h).
enum class LogLevel : int { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3, kOff = 4 };

std::string_view logLevelName(LogLevel level); // "debug", "info", "warning", "error", "off"
bool parseLogLevel(std::string_view name, LogLevel &level);

class Logger {
public:
  using Sink = std::function<void(LogLevel level, std::string_view tag, std::string_view message)>;

  Logger() = default; // silent
  Logger(Sink sink, LogLevel least);

  // Lets a caller skip composing a message that nobody reads.
  bool enabled(LogLevel level) const { return level >= least && level < LogLevel::kOff; }
  // One line without a newline. `tag` names the part that speaks: "cache", "tuner", ...
  // Compiled with its caller: the sink is the host's and may throw, and this library, which has no exceptions, would
  // not free the text then.
  void log(LogLevel level, std::string_view tag, std::string_view message) const {
    if (enabled(level))
      sink(level, tag, printable(message));
  }

private:
  Sink sink;
  LogLevel least = LogLevel::kOff;
};

} // namespace nsa
