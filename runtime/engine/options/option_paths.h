// Checks the paths that the host sets in the options or that environment variables contain. Each path is checked when
// an engine opens, so that a mistyped path is an error at once. A file or folder that the engine only reads must exist.
// A file or folder that the engine writes must exist, or the engine must be able to create it.
// Thread-safety: a pure function of its argument and the file system.
#pragma once

#include "runtime/engine/options/options.h"

namespace nsa {

// Checks resolved options. The error of a bad path names the option, or the variable that replaces it, with the path
// and the rule. checkPaths does not check pin_path and record_path, because the engine opens these files at once
// (pinned_table.h, plan_record.h).
Status checkPaths(const EngineOptions &options);

} // namespace nsa
