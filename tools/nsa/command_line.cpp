#include "tools/nsa/command_line.h"

#include "tools/nsa/ordered_help.h"

#include <string>

namespace nsa::tools {

std::unique_ptr<CLI::App> makeCommandLine(Action &action) {
  auto app = std::make_unique<CLI::App>("Native sparse attention kernels that build themselves.", "nsa");
  app->set_version_flag("--version", std::string("nsa ") + nsa_version() + " (" + nsa_source_id() + ")",
                        "Print the version and the source it was built from");
  app->formatter(std::make_shared<OrderedHelp>()); // verbs inherit it
  app->require_subcommand(1);

  addRunCommand(*app, action);
  addCompileCommand(*app, action);
  addTuneCommand(*app, action);
  addExplainCommand(*app, action);
  addGenerateCommand(*app, action);
  addDumpSelectionCommand(*app, action);
  addBenchCommand(*app, action);
  addCacheCommand(*app, action);
  addDoctorCommand(*app, action);
  addValidateCommand(*app, action);
  // Set last: verbs would inherit it.
  app->footer(
      "Each verb has its own --help. Exit codes: 0 done, 1 failed (the reason is on stderr), 2 not understood.");
  return app;
}

} // namespace nsa::tools
