// Composes the command that would store what a plan lacked, short enough for nsa_error.hint.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <cstddef>
#include <string>

namespace nsa {

inline constexpr size_t kMostHintBytes = 383; // the size of nsa_error.hint without the terminating NUL

struct TuneCommand {
  const Spec &spec; // what the caller asked for, and not the spec of one of its kernels
  const Maxima &maxima;
  std::string device, cachePath;
  std::string pinPath{}, templateDir{}; // as the engine has them; "": none
};
// Returns "store one: nsa tune --op nsa --config C.json ..., with C.json holding {...}", which can be pasted into a
// shell. Where the cache stores nothing, or a pinned table chooses, the text says what else must be done. Where the
// text would be too long, the paths are left out, then the JSON, and the text says so.
std::string tuneHint(const TuneCommand &command);

} // namespace nsa
