// A log with levels. The log's only output is a callback of the host: there is no global state and no formatting
// library. Every part of the library that logs holds a copy of the Logger that it was given.
// Thread-safety: a Logger is immutable. The sink of a Logger is called from any thread and must allow that.
#pragma once

#include "runtime/base/text.h"

#include <functional>
#include <string_view>

namespace nsa {

// The values of nsa_log_level in nsa/nsa.h are greater by 1.
enum class LogLevel : int { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3, kOff = 4 };

std::string_view logLevelName(LogLevel level); // "debug", "info", "warning", "error", "off"
bool parseLogLevel(std::string_view name, LogLevel &level);

class Logger {
public:
  using Sink = std::function<void(LogLevel level, std::string_view tag, std::string_view message)>;

  Logger() = default; // silent
  Logger(Sink sink, LogLevel least);

  // Returns whether a message of this level reaches the sink. A caller that needs much time to compose a message calls
  // `enabled` first.
  bool enabled(LogLevel level) const { return level >= least && level < LogLevel::kOff; }
  // Writes one line; `message` has no newline. `tag` names the part of the library that logs the line: "cache",
  // "tuner", ... `log` is inline so that it is compiled with the compiler options of its caller. The library of
  // runtime/base is compiled with -fno-exceptions. If `log` were compiled with -fno-exceptions, an exception that the
  // host's sink throws would leak the memory of the message.
  void log(LogLevel level, std::string_view tag, std::string_view message) const {
    if (enabled(level))
      sink(level, tag, printable(message));
  }

private:
  Sink sink;
  LogLevel least = LogLevel::kOff;
};

} // namespace nsa
