// Checks that the manifest of a stored kernel agrees with the problem for which the kernel is stored.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/manifest.h"
#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <map>
#include <string>

namespace nsa {

// checkServes fails when operator, target or a compiled-in value of the manifest differs from the problem: a row with
// such a manifest is damaged or was stored for another problem.
inline Status checkServes(const Manifest &manifest, const Problem &problem, const std::string &target) {
  if (manifest.op != problem.opName())
    return Status::invalid("operator", manifest.op, "must be " + problem.opName());
  if (manifest.target != target)
    return Status::invalid("target", manifest.target, "must be " + target);
  const std::map<std::string, std::string> fixed = problem.fixed();
  for (const auto &[name, value] : manifest.fixed)
    if (auto wanted = fixed.find(name); wanted != fixed.end() && wanted->second != value)
      return Status::invalid(name, value, "must be " + wanted->second);
  return Status::ok();
}

} // namespace nsa
