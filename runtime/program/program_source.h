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

struct ProgramSource {
  std::string file; // what messages call the text
  std::string text;
  // The texts of the libraries that the program brings along, by name: those that it imports, directly or not, and that
  // lie in the folder `library` beside its file or beside the file itself. All others ship with the compiler.
  std::map<std::string, std::string> libraries;
  std::string kernel;                         // the name that the text declares
  std::set<std::string, std::less<>> choices; // the names of what is tuned
  std::string digest;                         // of all texts, in hexadecimal; the file's name is no part of it

  // The word that stands for the program in keys and manifests: "softmax@1f0c...".
  std::string key() const { return kernel + "@" + digest; }

  using Pointer = std::shared_ptr<const ProgramSource>;
  // Reads a file, and the libraries beside it. The error names the file, and the line where the text is at fault.
  static Result<Pointer> read(const std::string &path);
  // Takes a text that has no file and so no libraries of its own. `name` is what messages call it.
  static Result<Pointer> of(std::string name, std::string text);
};

} // namespace nsa
