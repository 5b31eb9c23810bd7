#include "tools/nsa/pages/verb.h"

namespace nsa::tools {

namespace {

// "run cache list": the verb as the script keeps it, without the program's name.
std::string keyOf(const Verb &verb) {
  const std::string path = verb.path();
  return path.size() > verb.words.front().size() ? path.substr(verb.words.front().size() + 1) : "";
}

} // namespace

// The script looks at the leading words for the verb, at the word in front for an option that takes a value, and
// offers what may stand there. It needs nothing of the package bash-completion, which loads it when it is first wanted.
std::string bashCompletion(const Verb &program) {
  const std::string &name = program.name();
  std::string verbs, words, values;
  for (const Verb *verb : program.all()) {
    const std::string key = keyOf(*verb);
    if (!key.empty())
      verbs += (verbs.empty() ? "" : " | ") + ("'" + key + "'");
    std::vector<std::string> below, names;
    for (const Verb &each : verb->verbs)
      below.push_back(each.name());
    const bool namesFiles = !verb->places.empty() && verb->places.front().values.empty();
    if (!verb->places.empty() && !namesFiles)
      below = verb->places.front().values;
    for (const Option &option : verb->options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (option.valueName.empty())
        continue;
      std::vector<std::string> patterns;
      for (const std::string &each : option.names)
        patterns.push_back("'" + key + " " + each + "'");
      const std::string kind = !option.values.empty() ? "words='" + join(option.values, " ") + "'"
                               : option.takesFile()   ? "kind=file"
                               : option.takesFolder() ? "kind=folder"
                                                      : "kind=none";
      values += "  " + join(patterns, " | ") + ") " + kind + " ;;\n";
    }
    words += "    '" + key + "') words='" + join(below, " ") + "' options='" + join(names, " ") + "'";
    words += (namesFiles ? " kind=file" : "") + std::string(" ;;\n");
  }
  return "# Completion of " + name + " for bash, generated from its command line.\n_" + name + "() {\n" +
         R"(  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb='' words='' options='' kind='' i
  COMPREPLY=()
  # --option=value comes as three words.
  if [[ $word == = ]]; then
    word=''
  elif [[ $before == = && COMP_CWORD -gt 1 ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "${verb:+$verb }${COMP_WORDS[i]}" in
    )" + verbs +
         R"() verb="${verb:+$verb }${COMP_WORDS[i]}" ;;
    *) break ;;
    esac
  done
  case "$verb $before" in
)" + values +
         R"(  *)
    case "$verb" in
)" + words +
         R"(    esac
    if [[ $word == -* || -z $words$kind ]]; then
      words=$options kind=''
    fi
    ;;
  esac
  case "$kind" in
  file) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
  folder) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
  none) ;;
  *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
  esac
}
complete -F _)" +
         name + " " + name + "\n";
}

} // namespace nsa::tools
