// The text of a program of one's own in the tile language (docs/language.md), with the texts of its own libraries. A
// program keeps the texts that it was read with, so a file that changes later changes no program.
// Ownership: a ProgramSource owns its texts. Thread-safety: immutable.
#pragma once

#include "runtime/base/status.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

class ParsedProgram;

struct ProgramSource {
  using Pointer = std::shared_ptr<const ProgramSource>;

  std::string file; // what messages call the text
  std::string path; // of the file, as the host names it; "": the text has no file
  std::string text;
  // The texts of the program's own libraries, by name. An own library lies in the folder `library` beside the program's
  // file, and the program or another own library imports it. Each other library ships with the compiler.
  std::map<std::string, std::string> libraries;
  std::string kernel;                         // the name that the text declares
  std::set<std::string, std::less<>> choices; // the names of what is tuned
  std::shared_ptr<const ParsedProgram> parsed;
  // The clause `reference`: the program with whose result a tuning compares, or the choices of the configuration with
  // whose result it does. Null and empty: the text has no such clause.
  Pointer reference;
  std::map<std::string, std::string> referenceChoices;
  std::string digest; // of all texts, also the reference's, in hexadecimal; the file's name is no part of it

  // The word that stands for the program in keys and manifests: "softmax@1f0c...".
  std::string key() const { return kernel + "@" + digest; }

  // Reads a file, the libraries beside it, and the program NAME.tile beside it if the text says `reference NAME`. The
  // error names the file, and the line where the text is at fault.
  static Result<Pointer> read(const std::string &path);
  // Takes a text that has no file, and so neither libraries of its own nor a program beside it. `name` is what messages
  // call it.
  static Result<Pointer> of(std::string name, std::string text);
};

} // namespace nsa
