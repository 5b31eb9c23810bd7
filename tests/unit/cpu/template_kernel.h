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

// What a launch gives a kernel, by the names that its program declares.
class Arguments {
public:
  Arguments &view(const std::string &name, const void *data, std::vector<int64_t> strides) {
    return set(name, Slots().view(data, std::move(strides)));
  }
  Arguments &pagedView(const std::string &name, const void *data, std::vector<int64_t> strides, const int32_t *table,
                       int64_t tableStride) {
    return set(name, Slots().pagedView(data, std::move(strides), table, tableStride));
  }
  Arguments &i32(const std::string &name, int32_t value) { return set(name, Slots().i32(value)); }
  Arguments &f32(const std::string &name, float value) { return set(name, Slots().f32(value)); }

  // Nullptr: nothing has this name.
  const Slots *find(const std::string &name) const {
    const auto found = given.find(name);
    return found == given.end() ? nullptr : &found->second;
  }

private:
  Arguments &set(const std::string &name, Slots slots) {
    given.insert_or_assign(name, std::move(slots));
    return *this;
  }

  std::map<std::string, Slots> given;
};

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
