// While one of these lives, the first SIGINT (Ctrl-C) is only noted, so that the work in hand can end well; a second
// one ends the program. Thread-safety: one at a time; `wanted` may be asked by any thread.
#pragma once

#include <csignal>

namespace nsa::tools {

class Interruption {
public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption &) = delete;
  Interruption &operator=(const Interruption &) = delete;

  static bool wanted();

private:
  struct sigaction before;
};

} // namespace nsa::tools
