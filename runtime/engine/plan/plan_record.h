// The plan record of a program (record_path, NSA_RECORD): a file with a line of JSON for each plan (config_text.h),
// which `nsa tune FILE` tunes. Many threads, engines and processes may append to one file at the same time. One system
// call appends one line to the record, and readers merge equal lines.
//
// The engine opens the file of the record for each write and closes it afterwards, because a user may move the file at
// any time, and a host may close all its file descriptors. The permissions of a new file follow the process's umask. A
// plan record contains no code, so the owners and permissions of its folders are not checked. Another user could put a
// link under the name of the record. The engine therefore does not follow a symbolic link, and accepts only a regular
// file with one hard link that belongs to this user or to root.
// Thread-safety: all functions may be called by many threads at once. A PlanRecord belongs to one process; the child of
// a fork opens the file with a new PlanRecord.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"
#include "runtime/engine/graph/plan_key.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

namespace nsa {

class PlanRecord {
public:
  // Opens the plan record, and makes its file where there is none. The error of a bad file names `source`, which is the
  // option or the variable that gave the path, the path and the rule. `path` is absolute.
  static Result<std::unique_ptr<PlanRecord>> open(const std::string &source, const std::string &path);

  // Appends the plan's line to the record. Plans with the same plan key (plan_key.h) have the same kernels, so a
  // PlanRecord appends only the line of the first such plan. If a line cannot be written, it stays in memory, and the
  // next call of `add` or `flush` tries again. The error says why the line was not written, and how many lines wait in
  // memory.
  Status add(const Spec &spec, const Maxima &maxima);
  // Writes the lines that wait.
  Status flush();

private:
  explicit PlanRecord(std::string path) : path(std::move(path)) {}
  Status writeWaiting(); // with the mutex held

  const std::string path;
  std::mutex mutex;
  std::unordered_set<PlanKey, PlanKey::Hash> known; // plans whose lines are written, or wait
  std::string waiting;
  size_t waitingLines = 0;
};

} // namespace nsa
