#include "tools/reference/rotation.h"

#include <cmath>

namespace nsa::reference {

Turn turnOf(const Rotation &r, int64_t position, int64_t pair) {
  const double sign = r.spec.op == Operator::kRotateBwd ? -1 : 1;
  if (r.cos.isGiven())
    return {r.cos.at(0, position, 0, pair), sign * r.sin.at(0, position, 0, pair)};
  const double exponent = -2.0 * static_cast<double>(pair) / r.spec.turningDims();
  const double angle = static_cast<double>(position) * std::pow(static_cast<double>(r.spec.rotaryBase), exponent);
  return {std::cos(angle), sign * std::sin(angle)};
}

std::vector<double> rotate(const Rotation &r) {
  const int64_t heads = r.spec.kvHeads, dim = r.spec.qkDim, pairs = r.spec.turningDims() / 2;
  std::vector<double> out = readRows(r.sequences, r.x, heads, dim);
  const bool isHalf = r.spec.rotaryStyle == RotaryStyle::kHalf;
  for (const Sequence &sequence : r.sequences)
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t pair = 0; pair < pairs; ++pair) {
        const Turn turn = turnOf(r, sequence.position(query), pair);
        for (int64_t head = 0; head < heads; ++head) {
          double *row = out.data() + ((sequence.firstRow + query) * heads + head) * dim;
          double &first = row[isHalf ? pair : 2 * pair], &second = row[isHalf ? pair + pairs : 2 * pair + 1];
          const double x = first, y = second;
          first = x * turn.cos - y * turn.sin;
          second = x * turn.sin + y * turn.cos;
        }
      }
  return out;
}

} // namespace nsa::reference
