#include "runtime/process/log.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace nsa {

namespace {
constexpr std::string_view kLevelNames[] = {"debug", "info", "warning", "error", "off"};
} // namespace

std::string_view logLevelName(LogLevel level) { return kLevelNames[static_cast<int>(level)]; }

bool parseLogLevel(std::string_view name, LogLevel &level) {
  auto found = std::find(std::begin(kLevelNames), std::end(kLevelNames), name);
  if (found == std::end(kLevelNames))
    return false;
  level = static_cast<LogLevel>(found - std::begin(kLevelNames));
  return true;
}

Logger::Logger(Sink sink, LogLevel least) : sink(std::move(sink)), least(this->sink ? least : LogLevel::kOff) {}

} // namespace nsa
