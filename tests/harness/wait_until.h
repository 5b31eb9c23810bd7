// Waits for an event of another thread or process, however slow the machine is.
// Thread-safety: that of the condition.
#pragma once

#include <chrono>
#include <thread>

namespace nsa::test {

// Asks until the condition is true. Returns false when it is not within two minutes, which ends a test whose event
// never comes.
template <typename Condition> bool waitUntil(const Condition &condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

} // namespace nsa::test
