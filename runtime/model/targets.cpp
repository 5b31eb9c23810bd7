#include "runtime/model/targets.h"

#include <charconv>
#include <iterator>

namespace nsa {

namespace {

// sm_86: 8 and 6.
struct Architecture {
  int major, minor;
  bool isPlain; // without a suffix
};
std::optional<Architecture> parseArchitecture(std::string_view target) {
  constexpr std::string_view kPrefix = "sm_";
  if (!target.starts_with(kPrefix))
    return std::nullopt;
  target.remove_prefix(kPrefix.size());
  int number = 0;
  const char *targetEnd = target.data() + target.size();
  const auto [end, error] = std::from_chars(target.data(), targetEnd, number);
  if (error != std::errc() || number < 10)
    return std::nullopt;
  return Architecture{number / 10, number % 10, end == targetEnd};
}

} // namespace

std::string targetNames(std::string_view last) {
  std::string names;
  for (const TargetDef &target : kTargets)
    names.append(names.empty() ? "" : &target == std::end(kTargets) - 1 ? last : ", ").append(target.name);
  return names;
}

std::optional<int> ageOfCode(std::string_view codeTarget, std::string_view deviceTarget) {
  if (codeTarget == deviceTarget)
    return 0;
  const std::optional<Architecture> device = parseArchitecture(deviceTarget), code = parseArchitecture(codeTarget);
  if (!device || !code || !code->isPlain || code->major != device->major || code->minor > device->minor)
    return std::nullopt;
  // Of sm_90a the plain sm_90 is older, though of the same number.
  return 1 + device->minor - code->minor;
}

} // namespace nsa
