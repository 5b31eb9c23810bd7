// Keeps a fault that repeats itself from filling a host's log: of each tag only so many warnings a minute get through.
// What is asked for (info, debug) and errors are never held back.
// Thread-safety: the sink that it makes may be called by many threads at once, if the one behind it may.
#pragma once

#include "runtime/base/log.h"

#include <atomic>
#include <cstdint>
#include <functional>

namespace nsa {

struct LogLimit {
  int lines = 20; // of a tag in `seconds`; 0 or less: no limit
  double seconds = 60;
};

// The first line that is held back is announced by one of its own; the next one after the period says how many there
// were. `now` counts seconds and never goes back; `dropped` outlives the sink.
Logger::Sink limitLog(Logger::Sink sink, LogLimit limit, std::function<double()> now, std::atomic<uint64_t> &dropped);

} // namespace nsa
