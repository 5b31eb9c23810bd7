#include "autotune/tuner/crossover.h"

#include <algorithm>
#include <cmath>

namespace nsa {

std::string Crossover::toString() const {
  std::string text = "at " + std::to_string(measured) + " tokens, ";
  return text + (interpolated ? "about " + std::to_string(*interpolated) + " by interpolation"
                              : "the shortest length measured, or below it");
}

std::optional<Crossover> crossoverOf(std::vector<Duel> duels) {
  std::sort(duels.begin(), duels.end(), [](const Duel &a, const Duel &b) { return a.tokens < b.tokens; });
  const auto won = std::find_if(duels.begin(), duels.end(), [](const Duel &duel) { return duel.ours < duel.theirs; });
  if (won == duels.end())
    return std::nullopt;
  Crossover crossover{.measured = won->tokens, .interpolated = std::nullopt};
  if (won == duels.begin())
    return crossover;
  const auto lost = won - 1;
  const double behind = std::log(lost->ours / lost->theirs), ahead = std::log(won->ours / won->theirs);
  const double from = std::log(static_cast<double>(lost->tokens)), to = std::log(static_cast<double>(won->tokens));
  crossover.interpolated = std::llround(std::exp(from + behind / (behind - ahead) * (to - from)));
  return crossover;
}

} // namespace nsa
