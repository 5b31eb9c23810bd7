// Waiting for what another thread or process does, however slow the machine is.
// Thread-safety: as the condition.
#pragma once

#include <chrono>
#include <thread>

namespace nsa::test {

// Asks until the condition holds. False: it did not within two minutes, which ends a test whose event never comes.
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
