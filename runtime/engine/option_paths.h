// The paths that a host's options or the environment name. Each is looked at when an engine opens, so that a slip of
// the pen is an error there and no puzzle later: what is read must be there, and what is written must be there or be
// possible to make.
// Thread-safety: a pure function of its arguments and the file system.
#pragma once

#include "runtime/engine/options.h"

namespace nsa {

// `asked` is what the host gave, before EngineOptions::resolve has filled it up: the error names the option, or the
// variable that counts in its place, with the path and the rule. pin_path and record_path are not looked at, because
// they are opened at once (pinned_table.h, plan_record.h).
Status checkPaths(const EngineOptions &asked, const EngineOptions::Environment &environment);

} // namespace nsa
