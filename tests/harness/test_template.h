// The template of attention that an executable's suites run, and the part of their cases that it serves. The tile
// program serves all of them. A template scheduled by hand requires more of a problem, so the suites leave out, case by
// case, what it refuses; every plan asserts that it ran what is left.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <string>
#include <vector>

namespace nsa::test {

// Defined by each executable.
extern const char *const kTestTemplate;

constexpr const char *kTileTemplate = "attention";
constexpr const char *kHopperTemplate = "attention_sm90";

// Whether the executable's template serves the attention of a call, and the call has any. What the `require` lines of
// templates/cuda/sm90/attention.cu say of a problem is written here a second time: a case that the template refuses
// against these rules fails its test.
bool isServed(const Spec &spec);
// The io types that the template serves, the most precise one last.
const std::vector<DType> &servedTypes();
// `group`, or where the template does not serve so many heads of a group, the next number that it serves.
int32_t servedGroup(int32_t group);
// Maxima with so many sequences that the template serves the problem: one that wants many rows is not planned for few.
// A plan serves calls with fewer sequences than its maxima have.
Maxima servedMaxima(const Spec &spec, Maxima maxima);
// Why the template cannot run on a device of this target; empty: it can.
std::string whyNotOn(const std::string &target);

// The cases that are served. `specOf(value)` is the spec of one.
template <typename Case, typename SpecOf> std::vector<Case> servedCases(std::vector<Case> cases, const SpecOf &specOf) {
  std::erase_if(cases, [&](const Case &value) { return !isServed(specOf(value)); });
  return cases;
}

} // namespace nsa::test
