#include "tools/nsa/pages/verb.h"

namespace nsa::tools {

namespace {

// Inside of single quotes, where _arguments gives brackets and colons a meaning.
std::string escaped(const std::string &text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\')
      result += '\\';
    result += c;
  }
  return result;
}

std::string actionOf(const Option &option) {
  if (!option.values.empty())
    return "(" + join(option.values, " ") + ")";
  return option.takesFile() ? "_files" : option.takesFolder() ? "_files -/" : " ";
}

// One line for _arguments.
std::string lineOf(const Option &option) {
  const std::string value = option.valueName.empty() ? ""
                                                     : (option.mayLackValue ? "::" : ":") + escaped(option.valueName) +
                                                           ":" + actionOf(option);
  const std::string text = "[" + escaped(option.description) + "]" + value + "'";
  const std::string head = option.mayRepeat ? "*" : "";
  if (option.names.size() == 1)
    return "    '" + head + option.names[0] + text;
  return "    " + (option.mayRepeat ? "'*'" : "'(" + join(option.names, " ") + ")'") + "{" + join(option.names, ",") +
         "}'" + text;
}

void addFunction(std::string &script, const Verb &verb) {
  const std::string name = "_" + verb.path("_");
  script += "\n" + name + "() {\n";
  if (!verb.verbs.empty())
    script += "  local state line\n";
  script += "  _arguments" + std::string(verb.verbs.empty() ? "" : " -C");
  for (const Option &option : verb.options)
    script += " \\\n" + lineOf(option);
  if (!verb.places.empty())
    script += " \\\n    '*:" + escaped(verb.places.front().valueName) + ":" +
              (verb.places.front().values.empty() ? "_files" : actionOf(verb.places.front())) + "'";
  if (verb.verbs.empty()) {
    script += "\n}\n";
    return;
  }
  script +=
      " \\\n    '1:verb:->verb' \\\n    '*::argument:->argument'\n  case $state in\n  verb)\n    local -a verbs=(\n";
  for (const Verb &below : verb.verbs)
    script += "      '" + below.name() + ":" + escaped(below.description) + "'\n";
  script += "    )\n    _describe verb verbs\n    ;;\n  argument)\n    case $line[1] in\n";
  for (const Verb &below : verb.verbs)
    script += "    " + below.name() + ") _" + below.path("_") + " ;;\n";
  script += "    esac\n    ;;\n  esac\n}\n";
}

} // namespace

std::string zshCompletion(const Verb &program) {
  std::string script =
      "#compdef " + program.name() + "\n# Generated from the command line of " + program.name() + ".\n";
  for (const Verb *verb : program.all())
    addFunction(script, *verb);
  // Loaded as a function of its own name, it is called for the first time by being read.
  return script + "\n_" + program.name() + " \"$@\"\n";
}

} // namespace nsa::tools
