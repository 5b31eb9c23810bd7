// What the compile matrix compiles: the problems of every template, by architecture, and whose turn it is.
// Thread-safety: pure functions.
#pragma once

#include "tests/unit/compiler/compile_call.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nsa::test {

constexpr const char *kArchitectures[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"};
constexpr const char *kAttentionOperators[] = {"window", "dense", "cmp"};
constexpr const char *kHopperTemplate = "attention_sm90";

// A run compiles the share of one turn, as the texts are the same for each architecture but for what its shared memory
// admits. Each share has every template for one architecture at least, and all shares together have everything. The
// revision of compiler and templates chooses the turn: it is the same for one commit wherever that is tested, and
// another one after most changes. NSA_TEST_MATRIX=5 takes that turn, NSA_TEST_MATRIX=all compiles everything.
struct Turn {
  static constexpr size_t kCount = 24; // of three, four, six, eight, twelve or all
  size_t number = 0;
  bool isAll = false;

  static Turn of(std::string_view revision);
  // Prints it.
  static Turn ofThisRun();
  bool takes(size_t which, size_t count) const { return isAll || number % count == which % count; }
};

struct Shape {
  int qkDim, vDim, group;
  const char *dtype;
  int packed;
};

CompileCall attentionCall(const Shape &shape, const std::string &op);
// The target, the problem and the choices that the call fixes.
std::string textOf(const CompileCall &call);

// The problems of one of kArchitectures.
std::vector<CompileCall> problemsOf(const Turn &turn, size_t architecture);
// Every kernel that depends on the length of a list, for the longest lists, large heads of each type, and groups of 1
// to 128.
std::vector<CompileCall> longestListsOfEveryGroup(const char *target);
// What sm_90a alone has takes NVRTC two seconds each, so one of its operators has its turn, whose text is that of the
// others but for a few constants.
bool compilesMainTemplate(const Turn &turn, const std::string &op, const std::string &templateName);
// The problems whose configurations' corners are compiled.
std::vector<CompileCall> configCornerProblems(const Turn &turn);

} // namespace nsa::test
