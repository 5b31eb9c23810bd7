#include "tools/nsa/command/interruption.h"

namespace nsa::tools {
namespace {

volatile std::sig_atomic_t noted = 0;

} // namespace

Interruption::Interruption() {
  noted = 0;
  struct sigaction action{};
  action.sa_handler = [](int) { noted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before);
}

Interruption::~Interruption() { sigaction(SIGINT, &before, nullptr); }

bool Interruption::wanted() { return noted != 0; }

} // namespace nsa::tools
