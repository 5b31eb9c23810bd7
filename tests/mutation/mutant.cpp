#include "tests/mutation/mutant.h"

namespace nsa::mutation {

std::vector<Mutant> allMutants() {
  std::vector<Mutant> all;
  for (const std::span<const Mutant> part : {forwardMutants(), decodeMutants(), deviceMutants()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace nsa::mutation
