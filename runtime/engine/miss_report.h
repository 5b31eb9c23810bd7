// The command that would store what a plan lacked, short enough for nsa_error.hint.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <cstddef>
#include <string>

namespace nsa {

inline constexpr size_t kMostHintBytes = 383; // of nsa_error.hint, without the end

struct TuneCommand {
  const Spec &spec; // what the caller asked for, not one of its kernels
  const Maxima &maxima;
  std::string device, cachePath;
  std::string pinPath{}, templateDir{}; // the engine's; "": none
};
// "store one: nsa tune --op nsa --config C.json ..., with C.json holding {...}", ready for a shell. Where the cache
// keeps nothing or a pinned table chooses, what else is to be done. Where that is too long the paths are left out, then
// the JSON, and the text says so.
std::string tuneHint(const TuneCommand &command);

} // namespace nsa
