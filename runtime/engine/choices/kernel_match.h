// Checks that the manifest of a stored kernel agrees with the problem for which the kernel is stored.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/manifest.h"
#include "runtime/base/problem.h"
#include "runtime/base/status.h"
#include "runtime/engine/choices/problem_key.h"
#include "runtime/model/operators.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace nsa {

// checkServes fails when operator, target or a compiled-in value of the manifest differs from the problem: a row with
// such a manifest is damaged or was stored for another problem. It also fails for a kernel that was made before its
// operator got a parameter, where the other kernels of a plan rely on the parameter:
// - A kernel that lacks a view of OperatorDef::takesPlanViews would leave a buffer without values, which another kernel
//   reads, or would not read what another kernel has made for it.
// - A kernel that computes a chunk of the queries of a packed batch and does not know `query_step` cuts sequences at
//   other queries than the other kernels, and rows between both cuts would have no value.
// - A kernel of 16 bits that lacks OperatorDef::takesInSixteenBits leaves memory without values, which another kernel
//   reads: a `compress_dz` that does not know `kv_heads` leaves no rests of hidden values behind the heads.
inline Status checkServes(const Manifest &manifest, const ProblemKey &problem, const std::string &target) {
  if (manifest.op != problem.op)
    return Status::invalid("operator", manifest.op, "must be " + problem.op);
  if (manifest.target != target)
    return Status::invalid("target", manifest.target, "must be " + target);
  const std::string unset = "0";
  for (const auto &[name, value] : manifest.fixed) {
    const auto found = problem.fixed.find(name);
    const std::string &wanted = found != problem.fixed.end() ? found->second
                                : isNamedOnlyWhereSet(name)  ? unset
                                                             : value;
    if (value != wanted)
      return Status::invalid(name, value, "must be " + wanted);
  }
  const auto takes = [&](std::string_view name) {
    return std::ranges::find(manifest.params, name, &ManifestParam::name) != manifest.params.end();
  };
  const auto packed = manifest.fixed.find("packed");
  if (packed != manifest.fixed.end() && packed->second == "1" && takes("query_begin") && !takes("query_step"))
    return Status::invalid("query_step", "absent", "must be a parameter beside query_begin");
  const OperatorDef *def = findOperator(manifest.op); // null: a program of one's own
  const auto dtype = manifest.fixed.find("dtype");
  if (def && !def->takesInSixteenBits.empty() && dtype != manifest.fixed.end() &&
      dtype->second != dtypeName(DType::kF32) && !takes(def->takesInSixteenBits))
    return Status::invalid(std::string(def->takesInSixteenBits), "absent",
                           "must be a parameter of each " + manifest.op + " of 16 bits");
  if (def && def->takesPlanViews)
    for (const View view : def->planViews)
      if (const std::string_view name = viewRule(view).name; !takes(name))
        return Status::invalid(std::string(name), "absent", "must be a parameter of each kernel of " + manifest.op);
  return Status::ok();
}

} // namespace nsa
