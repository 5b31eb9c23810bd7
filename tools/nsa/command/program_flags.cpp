#include "tools/nsa/command/program_flags.h"

namespace nsa::tools {

CLI::Option *ProgramFlags::add(CLI::App &verb, std::initializer_list<const char *> ofOperator) {
  option = addOption(verb, "--program FILE", path,
                     "A program of your own in the tile language (docs/language.md)" +
                         std::string(ofOperator.size() ? ", in the place of an operator" : ""));
  for (const char *name : ofOperator) {
    CLI::Option *other = verb.get_option(name);
    if (other->get_required())
      needWithout(*other);
    option->excludes(other);
  }
  option->required(ofOperator.size() == 0);
  verb.parse_complete_callback([this] { check(); });
  if (!verb.get_option_no_throw("--set")) {
    addSettings(verb, settings,
                "Of --program: a fixed value, dtype, or a scalar, e.g. columns=4096 or dtype=bf16; may be repeated");
    verb.get_option("--set")->needs(option);
  }
  return option;
}

void ProgramFlags::needWithout(CLI::Option &other) { needed.push_back(other.required(false)); }

void ProgramFlags::check() const {
  if (isGiven())
    return;
  for (const CLI::Option *each : needed)
    if (each->count() == 0)
      throw CLI::RequiredError(each == needed.front() ? each->get_name() + " or --program" : each->get_name());
}

Result<ProgramRequest> ProgramFlags::request() const {
  NSA_ASSIGN_OR_RETURN(ProgramValues values, settingsOf(settings));
  return ProgramRequest{path, "", std::move(values)};
}

} // namespace nsa::tools
