// nsa_cli_pages markdown|manual|bash|zsh FILE: writes what is generated from the command line.
#include "tools/nsa/command/command.h"
#include "tools/nsa/files/file_io.h"
#include "tools/nsa/pages/verb.h"

#include <cstdio>

int main(int argc, char **argv) {
  using namespace nsa::tools;
  Action action;
  const Verb program = Verb::of(*makeCommandLine(action));
  const std::string kind = argc == 3 ? argv[1] : "";
  std::string text;
  if (kind == "markdown")
    text = markdownPage(program);
  else if (kind == "manual")
    text = manualPage(program, nsa_version());
  else if (kind == "bash")
    text = bashCompletion(program);
  else if (kind == "zsh")
    text = zshCompletion(program);
  if (text.empty()) {
    std::fprintf(stderr, "usage: nsa_cli_pages markdown|manual|bash|zsh FILE\n");
    return 2;
  }
  if (const nsa::Status status = writeText(argv[2], text); !status.isOk()) {
    std::fprintf(stderr, "nsa_cli_pages: %s\n", status.toString().c_str());
    return 1;
  }
  return 0;
}
