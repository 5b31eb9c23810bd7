// The named values of one rendering: what the problem fixes, what the target gives, `let` and `choice`.
// A value is text; expressions see integers, and operators and dtypes by their enumerators.
// Thread-safety: a value type.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace nsa {

class Values {
public:
  void set(std::string name, std::string text) { entries.insert_or_assign(std::move(name), std::move(text)); }
  void set(std::string name, int64_t value) { set(std::move(name), std::to_string(value)); }

  // The text of a name, null when there is none.
  const std::string *find(std::string_view name) const;
  // The number of a name for an expression; enumerator names stand for themselves. False when the name
  // is unknown or its text is no number.
  bool lookup(std::string_view name, int64_t &number) const;

private:
  std::map<std::string, std::string, std::less<>> entries;
};

// A decimal integer that spans the whole text.
bool parseInteger(std::string_view text, int64_t &value);

} // namespace nsa
