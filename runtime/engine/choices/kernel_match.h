// Checks that the manifest of a stored kernel agrees with the problem for which the kernel is stored.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/manifest.h"
#include "runtime/base/status.h"
#include "runtime/engine/choices/problem_key.h"

#include <string>

namespace nsa {

// checkServes fails when operator, target or a compiled-in value of the manifest differs from the problem: a row with
// such a manifest is damaged or was stored for another problem.
inline Status checkServes(const Manifest &manifest, const ProblemKey &problem, const std::string &target) {
  if (manifest.op != problem.op)
    return Status::invalid("operator", manifest.op, "must be " + problem.op);
  if (manifest.target != target)
    return Status::invalid("target", manifest.target, "must be " + target);
  for (const auto &[name, value] : manifest.fixed)
    if (const auto wanted = problem.fixed.find(name); wanted != problem.fixed.end() && wanted->second != value)
      return Status::invalid(name, value, "must be " + wanted->second);
  return Status::ok();
}

} // namespace nsa
