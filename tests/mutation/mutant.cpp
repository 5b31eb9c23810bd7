#include "tests/mutation/mutant.h"

#include <sstream>

namespace nsa::mutation {

std::vector<std::string> Mutant::filters() const {
  std::vector<std::string> all;
  std::istringstream stream{std::string(tests)};
  for (std::string filter; stream >> filter;)
    all.push_back(filter);
  return all;
}

std::vector<Mutant> allMutants() {
  std::vector<Mutant> all;
  for (const std::span<const Mutant> part :
       {forwardMutants(), decodeMutants(), gradientMutants(), selectedGradientMutants(), compressionGradientMutants(),
        deviceMutants(), stepMutants()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace nsa::mutation
