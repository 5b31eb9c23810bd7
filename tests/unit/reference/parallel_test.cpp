// The loops of the reference on several threads.
#include "tools/reference/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace nsa::reference {
namespace {

TEST(Parallel, EachIndexIsVisitedOnce) {
  std::vector<std::atomic<int>> visits(1000);
  forEachIndex(1000, /*threads=*/4, /*least=*/1, [&](int64_t i) { ++visits[static_cast<size_t>(i)]; });
  for (const std::atomic<int> &count : visits)
    EXPECT_EQ(count, 1);
}

TEST(Parallel, AnExceptionOfAnyThreadReachesTheCaller) {
  const std::thread::id caller = std::this_thread::get_id();
  for (const bool ofCaller : {true, false}) {
    std::atomic<bool> hasThrown = false;
    const auto work = [&](int64_t) {
      if ((std::this_thread::get_id() == caller) == ofCaller) {
        hasThrown = true;
        throw std::runtime_error("broken");
      }
      while (!hasThrown)
        std::this_thread::yield();
    };
    try {
      forEachIndex(1000, /*threads=*/4, /*least=*/1, work);
      FAIL() << "no exception";
    } catch (const std::runtime_error &error) {
      EXPECT_STREQ(error.what(), "broken");
    }
  }
}

} // namespace
} // namespace nsa::reference
