// The named values with which a template is rendered: values of the problem, values of the target, and values of
// `const` and `choice`. A Values object stores each value as text. If an expression uses a value, the value's text must
// be an integer, or the name of an operator or a dtype. The name of an operator or a dtype stands for the number of its
// enumerator.
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
  // Finds the number that `name` stands for in an expression: the number of the value with this name, the number of the
  // enumerator if `name` is an operator or a dtype, or a kernel constant (runtime/base/kernel_constants.h). `lookup`
  // returns false if `name` stands for no number.
  bool lookup(std::string_view name, int64_t &number) const;
  // All values, by name.
  const std::map<std::string, std::string, std::less<>> &all() const { return entries; }

private:
  std::map<std::string, std::string, std::less<>> entries;
};

} // namespace nsa
