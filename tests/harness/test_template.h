// The template of attention that the suites of an executable run, and the cases that it serves. The tile program serves
// all cases. A hand-scheduled template requires more of a problem, so the suites leave out the cases that it refuses.
// Every plan asserts that the template ran for the other cases.
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
constexpr const char *kStepTemplate = "decode_step"; // one launch for a step of decode

// Whether the executable's template serves the attention of a call, and the call has attention. The `require` lines of
// templates/cuda/sm90/attention.cu are repeated here: a case that the template refuses against these rules fails its
// test.
bool isServed(const Spec &spec);
// The input and output types that the template serves. The most precise one is last.
const std::vector<DType> &servedTypes();
// `group`, or the next larger number of heads in a group that the template serves.
int32_t servedGroup(int32_t group);
// How many new tokens a step of decode adds to a sequence at most: `most`, or fewer if the template serves fewer.
int64_t servedNew(const Spec &spec, int64_t most);
// Maxima with enough sequences for the template to serve: a template that requires many rows does not serve a plan for
// few. A plan serves calls with fewer sequences than its maxima have.
Maxima servedMaxima(const Spec &spec, Maxima maxima);
// Why the template cannot run on a device of this target. Empty: it can.
std::string whyNotOn(const std::string &target);

// The cases that the template serves. `specOf(value)` is the spec of a case.
template <typename Case, typename SpecOf> std::vector<Case> servedCases(std::vector<Case> cases, const SpecOf &specOf) {
  std::erase_if(cases, [&](const Case &value) { return !isServed(specOf(value)); });
  return cases;
}

} // namespace nsa::test
