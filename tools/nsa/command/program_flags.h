// The options with which verbs name a program of one's own instead of an operator: --program, and --set for its values.
// Thread-safety: one thread.
#pragma once

#include "tools/nsa/command/command.h"
#include "tools/support/program_job.h"

#include <initializer_list>

namespace nsa::tools {

class ProgramFlags {
public:
  // Adds --program, and --set unless the verb has it. None of the options `ofOperator`, which describe an operator, can
  // be given with --program. The ones of them that were required are needed without it. Without any of these options
  // --program is required.
  CLI::Option *add(CLI::App &verb, std::initializer_list<const char *> ofOperator);
  // Makes an option that is required needed without --program only.
  void needWithout(CLI::Option &other);
  bool isGiven() const { return option->count() > 0; }
  // What --set says.
  Result<ProgramRequest> request() const;

  std::string path;
  std::vector<std::string> settings;

private:
  // Throws the error of a command line that has neither --program nor all that describes an operator.
  void check() const;

  CLI::Option *option = nullptr;
  std::vector<CLI::Option *> needed; // without --program
};

} // namespace nsa::tools
