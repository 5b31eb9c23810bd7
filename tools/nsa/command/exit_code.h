// The exit codes of the program. The help text, docs/cli.md and the manual page contain the table kExitCodes.
// Thread-safety: values.
#pragma once

#include "runtime/base/status.h"

#include <string_view>
#include <utility>

namespace nsa::tools {

enum class ExitCode { kDone = 0, kFailed = 1, kTrouble = 2, kLeft = 3 };

struct ExitCodeRow {
  ExitCode code;
  std::string_view meaning;
};
inline constexpr ExitCodeRow kExitCodes[] = {
    {ExitCode::kDone, "Done. `cache diff`: the two files hold the same."},
    {ExitCode::kFailed,
     "Failed, and stderr says why. `cache diff`: the two files differ. `explain`: a plan would fail. "
     "`run --check`, `cache verify`, `check`, `fmt --check`, `doctor` and `validate`: something is wrong."},
    {ExitCode::kTrouble,
     "The command line was not understood, and stderr says why. `cache diff`: a file cannot be read."},
    {ExitCode::kLeft, "`tune`: kernels are left to measure, as the budget was spent or Ctrl-C ended the run. The same "
                      "command goes on from there."}};

// The result of a verb of the command line, such as `tune` or `doctor`. Most verbs of the command line return only a
// Status. An error in the Status gives exit code 1, and its text is printed on stderr.
class Ending {
public:
  // The constructors are implicit, so that the function that implements a verb of the command line can return a Status
  // or an ExitCode.
  // NOLINTBEGIN(google-explicit-constructor)
  Ending(Status status)
      : endStatus(std::move(status)), endCode(endStatus.isOk() ? ExitCode::kDone : ExitCode::kFailed) {}
  // Makes an Ending without an error text, for a verb of the command line that has printed its result on stdout.
  Ending(ExitCode code) : endCode(code) {}
  Ending(const Result<ExitCode> &code) : Ending(code ? Ending(*code) : Ending(code.status())) {}
  // NOLINTEND(google-explicit-constructor)
  Ending(ExitCode code, Status status) : endStatus(std::move(status)), endCode(code) {}

  ExitCode code() const { return endCode; }
  const Status &status() const { return endStatus; }

private:
  Status endStatus = Status::ok();
  ExitCode endCode;
};

} // namespace nsa::tools
