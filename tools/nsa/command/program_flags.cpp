#include "tools/nsa/command/program_flags.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace nsa::tools {

namespace {

// A word as a shell reads it.
std::string shellWord(const std::string &text) {
  const auto isPlain = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("/._=+-@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, isPlain))
    return text;
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

} // namespace

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

Status withTuneCommand(const Status &status, const ProgramRequest &request) {
  if (status.code() != ErrorCode::kCacheMiss)
    return status;
  ErrorInfo info = status.error();
  info.hint = "nsa tune --program " + shellWord(request.path);
  for (const auto &[name, value] : request.values)
    info.hint += " --set " + shellWord(name + "=" + value);
  return Status(std::move(info));
}

} // namespace nsa::tools
