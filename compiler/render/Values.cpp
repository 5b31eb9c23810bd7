#include "compiler/render/Values.h"

#include "runtime/base/kernel_constants.h"
#include "runtime/base/problem.h"
#include "runtime/base/text.h"

namespace nsa {

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
