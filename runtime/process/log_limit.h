// Keeps a repeated fault from filling a host's log. Each tag ("cache", "tuner", ...) may log only a limited number of
// warnings in a minute. Log lines of the levels error, info and debug are not limited.
// Thread-safety: many threads may call the returned sink at once if they may call the given sink at once.
#pragma once

#include "runtime/process/log.h"

#include <atomic>
#include <cstdint>
#include <functional>

namespace nsa {

struct LogLimit {
  int lines = 20; // warnings of one tag in `seconds`; 0 or less: no limit
  double seconds = 60;
};

// Returns a sink that passes on to `sink` all lines except the warnings above `limit`. When a warning is held back for
// the first time in a period of `seconds`, one line says so. After a period with held-back warnings, one line says how
// many warnings were held back, in front of the next warning of the tag. The clock `now` counts seconds and never goes
// back. `dropped` counts the lines held back and must outlive the returned sink.
Logger::Sink limitLog(Logger::Sink sink, LogLimit limit, std::function<double()> now, std::atomic<uint64_t> &dropped);

} // namespace nsa
