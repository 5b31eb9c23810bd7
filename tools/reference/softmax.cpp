#include "tools/reference/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::reference {

double softmax(std::vector<double> &scores) {
  double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
  if (scores.empty())
    return maximum;
  for (const double score : scores)
    maximum = std::max(maximum, score); // a NaN is passed over here, and comes back in the sum
  for (double &score : scores) {
    score = std::exp(score - maximum);
    sum += score;
  }
  for (double &score : scores)
    score /= sum;
  return maximum + std::log(sum);
}

} // namespace nsa::reference
