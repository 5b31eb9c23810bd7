// The named values of one rendering: values of the problem, values of the target, and the values of `let` and `choice`
// lines. A value is text. Expressions see it as an integer; the names of operators and dtypes count as the numbers of
// their enumerators.
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

  // The text of a name, or null if there is no such name.
  const std::string *find(std::string_view name) const;
  // The number of a name for an expression. The name of an enumerator is its own value. Returns false if the name is
  // unknown or its text is not a number.
  bool lookup(std::string_view name, int64_t &number) const;

private:
  std::map<std::string, std::string, std::less<>> entries;
};

// Parses a decimal integer. Returns false unless it spans the whole text.
bool parseInteger(std::string_view text, int64_t &value);

} // namespace nsa
