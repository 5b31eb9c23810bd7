// Holds the names of a kernel against those that are given to it: what it declares against the operators that it
// serves (runtime/model/kernel_arguments.def), and the values of a request against what the kernel compares them with.
// Thread-safety: pure functions.
#pragma once

#include "compiler/check/CheckedProblems.h"
#include "runtime/base/status.h"

namespace nsa {

// "a, b, c"
std::string joined(const auto &texts) {
  std::string result;
  for (const auto &text : texts)
    result.append(result.empty() ? "" : ", ").append(text);
  return result;
}

// Reports each tensor and each number that an operator of the kernel does not give, or gives in another form. `files`
// are the kernel and the libraries that it imports. A kernel that serves no operator may declare anything.
void checkArguments(const language::SyntaxTree &kernel, std::span<const language::SyntaxTree *const> files,
                    language::Diagnostics &diagnostics);

// Reports a `fixed` name that problems of the operator lack. The name is one of the kernel's own.
void reportFixed(const language::SyntaxTree &kernel, Operator op, std::string_view name,
                 language::Diagnostics &diagnostics);

// The values that a caller gives: those of choices are among their numbers, and those of problems are of their kind.
// What no problem of NSA Runtime has is an integer, or a word of the kind with which the files compare it.
Status checkValues(const language::SyntaxTree &kernel, std::span<const language::SyntaxTree *const> files,
                   const language::GivenValues &values, const std::string &path);

} // namespace nsa
