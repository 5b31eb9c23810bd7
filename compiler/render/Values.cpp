#include "compiler/render/Values.h"

#include "runtime/base/kernel_constants.h"
#include "runtime/base/problem.h"

#include <charconv>

namespace nsa {

bool parseInteger(std::string_view text, int64_t &value) {
  auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && next == text.data() + text.size();
}

const std::string *Values::find(std::string_view name) const {
  auto found = entries.find(name);
  return found == entries.end() ? nullptr : &found->second;
}

bool Values::lookup(std::string_view name, int64_t &number) const {
  const std::string *text = find(name);
  if (!text)
    return lookupEnumerator(name, number) || lookupKernelConstant(name, number);
  return parseInteger(*text, number) || lookupEnumerator(*text, number);
}

} // namespace nsa
