// The plan record of a program (record_path, NSA_RECORD): a file with a line of JSON for each plan (config_text.h),
// which `nsa tune FILE` tunes. Threads, engines, forks and other processes may append to one file at once. One system
// call appends one line to the record, and readers merge equal lines.
//
// The record's file is opened anew for each write, so the file may be moved away, and a host may close all descriptors.
// The mode of a new record follows the process's umask. A plan record is no code, so the folders on the way to it are
// not judged. Other users may know the record's name, so a link in its place is not followed, and the record must be a
// regular file that belongs to this user or to root and has no second name.
// Thread-safety: all functions may be called by many threads at once. A record belongs to one process; the child of a
// fork opens its own.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace nsa {

class PlanRecord {
public:
  // Opens the plan record, and makes its file where there is none. The error of a bad file names record_path, the path
  // and the rule. `path` is absolute.
  static Result<std::unique_ptr<PlanRecord>> open(const std::string &path);

  // Appends the plan's line to the record, unless the line was added before. A line that cannot be written waits for
  // the next call; the error says why the line was not written, and how many lines wait.
  Status add(const Spec &spec, const Maxima &maxima);
  // Writes the lines that wait.
  Status flush();

private:
  explicit PlanRecord(std::string path) : path(std::move(path)) {}
  Status writeWaiting(); // with the mutex held

  const std::string path;
  std::mutex mutex;
  std::set<std::string, std::less<>> known; // lines that are written, or wait
  std::string waiting;
  size_t waitingLines = 0;
};

} // namespace nsa
