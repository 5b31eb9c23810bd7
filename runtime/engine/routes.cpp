#include "runtime/engine/routes.h"

#include "runtime/base/manifest.h"

namespace nsa {

std::string attentionRoute(Operator op) { return std::string(operatorName(op)) + ".attention_from"; }

bool isAsMeasured(const Spec &spec, const Maxima &maxima) {
  const Problem asked = Problem::make(spec, maxima);
  if (asked.buckets.at("seqlen_q") != asked.buckets.at("seqlen_k"))
    return false;
  const Maxima alone{.batch = 1, .tokensQ = maxima.seqlenQ, .seqlenQ = maxima.seqlenQ, .seqlenK = maxima.seqlenK};
  return asked.fixed == Problem::make(spec, alone).fixed;
}

std::string routeFamily(const Spec &spec) {
  // Lengths are what the threshold is about; no value that is compiled in but whether queries are many follows from
  // them.
  Problem problem = Problem::make(spec, {.batch = 1, .tokensQ = 1, .seqlenQ = 1, .seqlenK = 1});
  problem.fixed.erase("many_queries");
  std::string text = problem.op + " " + formatValues(problem.fixed) + " kv_heads=" + std::to_string(spec.kvHeads);
  if (spec.op == Operator::kWindow)
    text += " window=" + std::to_string(spec.window);
  return text;
}

} // namespace nsa
