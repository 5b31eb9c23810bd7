// A stopwatch counts milliseconds from the moment at which it was made.
// Thread-safety: immutable.
#pragma once

#include <chrono>

namespace nsa {

class Stopwatch {
public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

private:
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

} // namespace nsa
