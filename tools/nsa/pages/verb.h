// The verbs of the command line and their options, from which the documentation pages and the completion scripts of
// shells are made. Verbs and options are read from the parser itself, so no documentation page and no completion script
// can name an option that does not exist.
// Thread-safety: immutable once made.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace nsa::tools {

std::string join(const std::vector<std::string> &words, const std::string &between);

struct Option {
  std::vector<std::string> names; // "-o", "--output"; empty for an argument that is given by its place
  std::string description;
  std::string valueName;           // "FILE"; empty for a flag
  std::vector<std::string> values; // all values, where there are few; of the argument VERB they are the verbs
  bool mayRepeat = false;
  bool mayLackValue = false;

  bool takesFile() const { return valueName.find("FILE") != std::string::npos; }
  bool takesFolder() const { return valueName == "DIR"; }
};

struct Verb {
  std::vector<std::string> words; // "nsa", "cache", "list"
  std::string description, footer;
  std::string help; // what --help prints
  std::vector<Option> options, places;
  std::vector<Verb> verbs; // the verbs below this one

  static Verb of(CLI::App &app, std::vector<std::string> above = {});
  const std::string &name() const { return words.back(); }
  // "nsa cache list"
  std::string path(const std::string &between = " ") const { return join(words, between); }
  // Returns this verb and all verbs below it in the tree of verbs, each before the verbs below it.
  std::vector<const Verb *> all() const;
};

// The page in docs/, the manual page, and the completion of two shells.
std::string markdownPage(const Verb &program);
std::string manualPage(const Verb &program, const std::string &version);
std::string bashCompletion(const Verb &program);
std::string zshCompletion(const Verb &program);

} // namespace nsa::tools
