// The problems for which a kernel is checked. A file says which values of a problem it has compiled in, and not which
// values these are, so that a check has to choose some.
// Thread-safety: pure functions.
#pragma once

#include "compiler/language/types/Declarations.h"
#include "runtime/base/problem.h"

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

struct CheckedProblem {
  Operator op{}; // of a kernel that serves operators
  DType dtype = DType::kBf16;
  language::GivenValues fixed;
};

// The value of what no problem of an operator has.
inline constexpr std::string_view kAssumedValue = "64";

// The `fixed` names of these files.
std::set<std::string, std::less<>> fixedNames(std::span<const language::SyntaxTree *const> files);

// The names of the values that problems of an operator may have compiled in.
std::set<std::string, std::less<>> valueNames(Operator op);

// For each operator that the kernel serves, and each element type of a call: problems of usual sizes, in which each
// value that is a word or a truth value has each of its values at least once. A kernel that serves no operator gets the
// same values under their names. All other names of `fixed` are in `assumed`, and have kAssumedValue. `values` are
// those that the caller gives, which all problems have.
std::vector<CheckedProblem> checkedProblems(const language::SyntaxTree &kernel,
                                            const std::set<std::string, std::less<>> &fixed,
                                            const language::GivenValues &values,
                                            std::set<std::string, std::less<>> &assumed);

} // namespace nsa
