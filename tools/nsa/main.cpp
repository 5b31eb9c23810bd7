// The one command line: `nsa VERB`. Its exit codes are in tools/nsa/command/exit_code.h.
#include "tools/nsa/command/command.h"
#include "tools/nsa/command/parser_texts.h"

#include <cstdio>
#include <exception>
#include <new>

namespace {

using namespace nsa::tools;

constexpr int kFailure = static_cast<int>(ExitCode::kFailed);

// What a failed verb says. A miss ends in a line of its own that can be pasted into a shell.
std::string failureText(const nsa::Status &status) {
  if (status.code() != nsa::ErrorCode::kCacheMiss || status.error().hint.empty())
    return status.toString();
  nsa::ErrorInfo info = status.error();
  const std::string command = std::exchange(info.hint, "");
  return info.toString() + "\nThis stores what is missing:\n" + command;
}

// Parses and acts; the exit code.
int runProgram(int argc, char **argv) {
  Action action;
  const std::unique_ptr<CLI::App> made = makeCommandLine(action);
  CLI::App &app = *made;

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) {
    return app.exit(request); // --help, --version
  } catch (const CLI::ParseError &error) {
    const UsageError usage = usageErrorOf(app, error);
    std::fprintf(stderr, "%s", usage.verbs.c_str());
    printError(usage.text);
    return static_cast<int>(ExitCode::kTrouble);
  }

  try {
    const Ending ending = action();
    if (!ending.status().isOk())
      printError(failureText(ending.status()));
    return static_cast<int>(ending.code());
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "nsa: not enough memory for the tensors\n"); // without making a text
    return kFailure;
  } catch (const std::exception &exception) {
    printError(exception.what());
    return kFailure;
  }
}

} // namespace

int main(int argc, char **argv) {
  const int code = runProgram(argc, argv);
  // What a full disk swallowed must not look like success; std::cout writes through stdout.
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (lost && code == 0) {
    std::fprintf(stderr, "nsa: stdout cannot be written\n");
    return kFailure;
  }
  return code;
}
