// The named values of one rendering: values of the problem, values of the target, and the values of `let` and `choice`
// lines. A value in Values is text. Expressions see the text of a value as an integer; the names of operators and
// dtypes count as the numbers of their enumerators.
// Thread-safety: Values is a value type.
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

  // Returns the text of the value with this name, or null if no value has this name.
  const std::string *find(std::string_view name) const;
  // Finds the number that a name means in an expression. The name of an enumerator is its own value. `lookup` returns
  // false if the name is unknown or the text of its value is not a number.
  bool lookup(std::string_view name, int64_t &number) const;

private:
  std::map<std::string, std::string, std::less<>> entries;
};

// Parses a decimal integer. Returns false unless the integer spans the whole text.
bool parseInteger(std::string_view text, int64_t &value);

} // namespace nsa
