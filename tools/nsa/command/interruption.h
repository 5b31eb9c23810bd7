// While an Interruption exists, the first SIGINT (Ctrl-C) only sets a flag, so that the program can complete what it is
// doing. A second SIGINT ends the program.
// Thread-safety: only one Interruption may exist at a time; any thread may ask `wanted`.
#pragma once

#include <csignal>

namespace nsa::tools {

class Interruption {
public:
  Interruption() {
    noted = 0;
    struct sigaction action{};
    action.sa_handler = [](int) { noted = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before);
  }
  ~Interruption() { sigaction(SIGINT, &before, nullptr); }
  Interruption(const Interruption &) = delete;
  Interruption &operator=(const Interruption &) = delete;

  static bool wanted() { return noted != 0; }

private:
  static inline volatile std::sig_atomic_t noted = 0;
  struct sigaction before;
};

} // namespace nsa::tools
