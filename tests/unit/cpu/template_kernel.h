// A template of this repository as the driver compiles it for the CPU, run over its whole grid with guard pages.
// Thread-safety: none needed, one test uses one object.
#pragma once

#include "compiler/render/Candidates.h"
#include "runtime/base/problem.h"
#include "tests/unit/cpu/tile_kernel.h"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace nsa::test {

class TemplateKernel {
public:
  using Pairs = std::map<std::string, std::string>;

  // `file` is a path below templates/, `pinned` values of its choices: the cheapest candidate with them is taken.
  // Fails the running test when there is none. `roundsOperands`: products take what a GPU's take.
  TemplateKernel(const std::string &file, Operator op, const Pairs &fixed, const Pairs &pinned,
                 const std::string &features, bool roundsOperands = false);

  // `sizes` are the run-time values that the template's grid names.
  void run(const Arguments &arguments, const std::map<std::string, int64_t> &sizes) const;
  // The arguments in the order of the kernel. Fails the running test when one is missing.
  Slots slots(const Arguments &arguments) const;
  // All programs of that grid. Fails the running test when the grid cannot be evaluated.
  std::vector<std::array<int32_t, 3>> programs(const std::map<std::string, int64_t> &sizes) const;

  const Pairs &config() const { return candidate.config; }
  const TileKernel &program() const { return *kernel; }

private:
  void compile(const std::string &file, Operator op, const Pairs &fixed, const Pairs &pinned,
               const std::string &features, bool roundsOperands);

  TemplateHeader header;
  TemplateCandidate candidate;
  std::vector<std::string> names; // of the kernel's arguments
  std::unique_ptr<TileKernel> kernel;
};

} // namespace nsa::test
