// Checks the values of number options on command lines. An error about a number says in a few words which value was
// given and which rule it breaks. The number checks of the option parser CLI11 are not used, because they accept some
// texts that are no number, turn an overflow into the largest number, and print the limits of a type with all their
// digits.
// Thread-safety: number_option.h has only pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace nsa::tools {

template <typename Number> bool readNumber(const std::string &text, Number &number) {
  const char *end = text.data() + text.size();
  const auto [past, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && past == end;
}

inline CLI::Validator wholeNumber(int64_t least, int64_t most, const std::string &description,
                                  const std::string &rule) {
  return {[=](std::string &text) {
            int64_t number = 0;
            return readNumber(text, number) && number >= least && number <= most ? "" : text + " must be " + rule;
          },
          description};
}
inline CLI::Validator wholeAbove0() {
  return wholeNumber(1, std::numeric_limits<int64_t>::max(), "POSITIVE", "a whole number from 1 on");
}
inline CLI::Validator wholeFrom0() {
  return wholeNumber(0, std::numeric_limits<int64_t>::max(), "NONNEGATIVE", "a whole number from 0 on");
}
inline CLI::Validator wholeWithin(int64_t least, int64_t most) {
  const std::string from = std::to_string(least), to = std::to_string(most);
  return wholeNumber(least, most, "INT in [" + from + " - " + to + "]", "a whole number from " + from + " to " + to);
}

inline CLI::Validator secondsAbove0() {
  return {[](std::string &text) {
            double number = 0;
            return readNumber(text, number) && std::isfinite(number) && number > 0
                       ? ""
                       : text + " must be a number of seconds above 0";
          },
          "POSITIVE"};
}

// A number of bytes, with a unit that the parser knows (64MB, 1GiB). sizeInBytes replaces the text of an option by the
// number of bytes.
inline CLI::Validator sizeInBytes() {
  const CLI::AsSizeValue units(false);
  return {[units](std::string &text) -> std::string {
            const std::string given = text;
            const std::string digits = text.substr(0, text.find_first_not_of("0123456789"));
            int64_t number = 0;
            if (readNumber(digits, number) && units(text).empty() && readNumber(text, number) && number >= 1)
              return "";
            return given + " must be a size from 1 byte on, below 2^63 bytes";
          },
          units.get_description()};
}

} // namespace nsa::tools
