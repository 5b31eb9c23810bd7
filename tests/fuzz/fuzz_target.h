// A fuzz target: one place where bytes from outside reach our code, and what must hold whatever they are. libFuzzer
// drives it (engine.cpp), and so does the replay of the checked-in inputs (replay.cpp). A target stands in a file of
// its own and registers itself. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nsa::fuzz {

struct Target {
  std::string_view name; // of the folder of its inputs, too
  void (*run)(std::string_view input);
  // From a checked-in file to an input, where people cannot read the inputs. nullptr: the file is the input.
  std::string (*expand)(const std::string &file) = nullptr;
};

struct Registration {
  explicit Registration(const Target &target);
};
// Those that are linked into this program.
const std::vector<Target> &targets();

// Ends the program, as a sanitizer's finding does, when something does not hold that must.
void expect(bool holds, std::string_view what);

// A file of this content in a folder of the program's own, which only this user can see; the same name again is another
// content in the same place.
std::string writeInput(const std::string &name, std::string_view content);
std::string readBack(const std::string &path);
// Removes everything from that folder.
void clearInputs();

// Numbers that a target draws from the end of its input, so that one input is always one case.
class Draw {
public:
  explicit Draw(std::string_view bytes) : bytes(bytes) {}
  // 0 when the bytes are used up.
  uint8_t byte();
  int64_t number(); // small ones and those at the ends of the types are as likely as others

private:
  std::string_view bytes;
};

} // namespace nsa::fuzz
