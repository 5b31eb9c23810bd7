// The command line as pages and completion scripts need it: verbs with what they take, read from the parser itself, so
// that neither can tell of an option that is not there. Thread-safety: immutable once made.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace nsa::tools {

struct Option {
  std::vector<std::string> names; // "-o", "--output"; none of what stands by its place
  std::string description;
  std::string valueName;           // "FILE"; empty for a flag
  std::vector<std::string> values; // all there are, where they are few
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
  std::vector<Verb> verbs; // below it

  static Verb of(CLI::App &app, std::vector<std::string> above = {});
  const std::string &name() const { return words.back(); }
  // "nsa cache list"
  std::string path(const std::string &between = " ") const;
  // This one and all below it, each before its own.
  std::vector<const Verb *> all() const;
};

} // namespace nsa::tools
