// The one command line: `nsa VERB`. Exit codes: 0 done, 1 failed (the reason on stderr), 2 not understood.
#include "tools/nsa/command.h"
#include "tools/nsa/command_line.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

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
  using namespace nsa::tools;
  Action action;
  const std::unique_ptr<CLI::App> made = makeCommandLine(action);
  CLI::App &app = *made;

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) {
    return app.exit(request); // --help, --version
  } catch (const CLI::ParseError &error) {
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') {
      // The parser would only say that a subcommand is required.
      printWarning("unknown verb '" + std::string(argv[1]) + "'\nRun `nsa --help`.");
      return kUsage;
    }
    const std::string verb = app.get_subcommands().empty() ? "" : " " + app.get_subcommands().front()->get_name();
    printWarning(std::string(error.what()) + "\nRun `nsa" + verb + " --help`.");
    return kUsage;
  }

  try {
    if (const nsa::Status status = action(); !status.isOk()) {
      printWarning(failureText(status));
      return kFailure;
    }
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "nsa: not enough memory for the tensors\n"); // without making a text
    return kFailure;
  } catch (const std::exception &exception) {
    printWarning(exception.what());
    return kFailure;
  }
  return 0;
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
