#include "runtime/process/log_limit.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace nsa {

namespace {

struct Period {
  double begin = 0;
  int lines = 0;
  uint64_t dropped = 0;
};

struct Limiter {
  LogLimit limit;
  std::function<double()> now;
  std::atomic<uint64_t> &dropped;
  std::mutex mutex;
  std::map<std::string, Period, std::less<>> periods; // by tag
};

} // namespace

Logger::Sink limitLog(Logger::Sink sink, LogLimit limit, std::function<double()> now, std::atomic<uint64_t> &dropped) {
  if (!sink || limit.lines <= 0)
    return sink;
  std::shared_ptr<Limiter> limiter(new Limiter{limit, std::move(now), dropped, {}, {}});
  return [sink = std::move(sink), limiter](LogLevel level, std::string_view tag, std::string_view message) {
    if (level != LogLevel::kWarning)
      return sink(level, tag, message);
    const double time = limiter->now();
    std::string before; // composed under the lock, said outside of it: the host's callback may take its time
    bool passes = true;
    {
      std::lock_guard lock(limiter->mutex);
      auto found = limiter->periods.find(tag);
      if (found == limiter->periods.end())
        found = limiter->periods.emplace(std::string(tag), Period{time}).first;
      Period &period = found->second;
      if (time - period.begin >= limiter->limit.seconds) {
        if (period.dropped != 0)
          before = std::to_string(period.dropped) + " warnings were left out";
        period = {time};
      }
      passes = period.lines < limiter->limit.lines;
      if (passes) {
        ++period.lines;
      } else {
        limiter->dropped.fetch_add(1, std::memory_order_relaxed);
        if (period.dropped++ == 0)
          before = "more than " + std::to_string(limiter->limit.lines) + " warnings within " +
                   std::to_string(static_cast<int>(limiter->limit.seconds)) + " s: further ones are left out";
      }
    }
    if (!before.empty())
      sink(level, tag, before);
    if (passes)
      sink(level, tag, message);
  };
}

} // namespace nsa
