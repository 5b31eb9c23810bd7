// The one command line: `nsa VERB`. Exit codes: 0 done, 1 failed (the reason on stderr), 2 not understood.
#include "tools/nsa/command.h"

#include <cstdio>

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

} // namespace

int main(int argc, char **argv) {
  using namespace nsa::tools;
  CLI::App app("Native sparse attention kernels that build themselves.", "nsa");
  app.set_version_flag("--version", std::string("nsa ") + nsa_version() + " (" + nsa_source_id() + ")",
                       "Print the version and the source it was built from");
  app.require_subcommand(1);
  app.footer("Each verb has its own --help. Exit codes: 0 done, 1 failed (the reason is on stderr), 2 not understood.");

  Action action;
  addRunCommand(app, action);
  addCompileCommand(app, action);
  addTuneCommand(app, action);
  addExplainCommand(app, action);
  addCacheCommand(app, action);
  addDoctorCommand(app, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) {
    return app.exit(request); // --help, --version
  } catch (const CLI::ParseError &error) {
    const CLI::App *verb = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
    std::fprintf(stderr, "nsa: %s\nRun `nsa%s%s --help`.\n", error.what(), verb == &app ? "" : " ",
                 verb == &app ? "" : verb->get_name().c_str());
    return kUsage;
  }

  if (const nsa::Status status = action(); !status.isOk()) {
    std::fprintf(stderr, "nsa: %s\n", status.toString().c_str());
    return kFailure;
  }
  return 0;
}
