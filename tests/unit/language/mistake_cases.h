// Mistakes of programs, and what is said about them: cases of a text file. A case begins with a line `=== title`. The
// program follows, and behind a line `---` the messages.
#pragma once

#include <fstream>
#include <string>
#include <vector>

namespace nsa::language {

struct Mistake {
  std::string title, program, messages;
};

inline std::vector<Mistake> readMistakes(const std::string &path) {
  std::ifstream file(path);
  std::vector<Mistake> found;
  std::string *part = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("=== ")) {
      found.push_back({line.substr(4), "", ""});
      part = &found.back().program;
    } else if (line == "---" && part) {
      part = &found.back().messages;
    } else if (part) {
      *part += line + "\n";
    }
  }
  for (Mistake &mistake : found) // the empty line in front of the next case
    if (mistake.messages.ends_with("\n\n"))
      mistake.messages.pop_back();
  return found;
}

} // namespace nsa::language
