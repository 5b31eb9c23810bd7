// While an Interruption exists, the first SIGINT (Ctrl-C) only sets a flag, so that the program can complete what it is
// doing. A second SIGINT ends the program.
// Thread-safety: only one Interruption may exist at a time; any thread may ask `wanted`.
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
