// Composes the command that would make and store the kernels that a plan or a program lacked: one line that can be
// pasted into a POSIX shell. Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <map>
#include <string>

namespace nsa {

// What is tuned.
struct TunedSubject {
  std::string options;   // of `nsa tune`: "--op window --config ...", "--program FILE --set rows=100"
  std::string comment{}; // what has to be done before; "": nothing
};
// `spec` is what the caller asked for, and not the spec of one of its kernels.
TunedSubject planTuning(const Spec &spec, const Maxima &maxima);
// The program `name` in the file `path`. If `path` is "", the comment says that the text has to be saved as NAME.tile.
TunedSubject programTuning(const std::string &name, const std::string &path,
                           const std::map<std::string, std::string> &values);

struct TuneCommand {
  TunedSubject subject;
  std::string device, cachePath;
  // The engine options that decide which stored kernels the engine may use. "", 0 and false mean that the option is not
  // set.
  std::string pinPath{}, templateDir{}, cpuFeatures{};
  int decodeSplits = 0;
  bool ignoreThresholds = false;
};
// Returns "NSA_CPU_FEATURES=x86-64-v3 nsa tune --op nsa --config '{...}' --batch 1 ... --cache /kernels.db". If the
// engine has no database or has a pinned table, the returned command stores its kernels in the file kernels.db in the
// shell's working directory. A comment at the end of the command then says how the engine can use kernels.db.
std::string tuneHint(const TuneCommand &command);

} // namespace nsa
