// Checks a file of the tile language as the compiler would compile it: for each target that the file names, each
// operator that it serves and each element type of a call, the file is parsed, typed, lowered to the tile dialect and
// scheduled, with the configuration that is predicted to be the fastest. Neither CUDA nor machine code is made, and no
// device is needed.
// Thread-safety: pure functions, besides the files that are read.
#pragma once

#include "compiler/language/types/Constants.h"
#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace nsa {

struct CheckRequest {
  std::string path{};
  language::GivenValues values{}; // of the problem, and of choices
  std::string target{};           // "": all that the file names
  bool explains = false;
};

struct CheckReport {
  bool isGood = false;
  std::string messages; // errors and warnings, written as clang does
  // What was checked, in one line; or where the request asks for it, what explain() says of one program.
  std::string text;
};

// The result is an error if the file cannot be read, or if the request has a value that the file has no name for.
Result<CheckReport> checkProgram(const CheckRequest &request);

struct FormatReport {
  bool isGood = false;
  std::string messages;
  std::string text; // the one layout
};

// The layout of a text. `name` is what messages call the file.
FormatReport formatProgram(std::string name, std::string_view text);

} // namespace nsa
