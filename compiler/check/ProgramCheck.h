// The runs of one check: a kernel is compiled for targets and problems, and what is said in several runs is said once.
// Thread-safety: none.
#pragma once

#include "compiler/check/CheckedProblems.h"
#include "compiler/driver/Target.h"
#include "compiler/driver/TileFiles.h"
#include "compiler/language/types/Constants.h"
#include "compiler/render/Candidates.h"

#include "mlir/IR/MLIRContext.h"

#include <string>
#include <vector>

namespace nsa {

// Reports the error of a kernel's header, at the declaration of its line.
void reportHeader(const language::SyntaxTree &kernel, const Status &error, language::Diagnostics &diagnostics);

class ProgramCheck {
public:
  // `header` has the choices of the kernel.
  ProgramCheck(const language::SyntaxTree &kernel, TemplateHeader header, const language::LibraryResolver &libraries,
               const TileFiles &files, bool explains);

  // Compiles the kernel for a target and problems. The kernel need not serve every problem, but one of each operator
  // and element type.
  Status run(const Target &target, const std::vector<CheckedProblem> &problems);

  bool hasErrors() const { return errorCount != 0; }
  // The programs that were compiled, or that were refused before.
  size_t programs() const { return programCount; }
  // What was said, each message once. A message that not all programs have names one that has it.
  std::string messages() const;
  // What explain() says of the first program.
  const std::string &explanation() const { return explanationText; }

private:
  struct Message {
    std::string text;
    std::string where; // the first program that has it
    size_t count = 0;
  };
  // What a run is called in messages.
  static std::string describe(const Target &target, const language::GivenValues &problem,
                              const language::GivenValues &choices);
  // A line of the kernel that excluded configurations where none is left, and values for which it does not hold.
  struct Exclusion {
    int line = 0;
    std::string rule, values;
  };
  // Whether the kernel serves the problem.
  bool check(const Target &target, int lanes, const CheckedProblem &problem, Exclusion &last);
  enum class Outcome : uint8_t { kDone, kTooLarge };
  Outcome compile(const Target &target, const language::GivenValues &values, language::Diagnostics &diagnostics,
                  std::string &sharedMemory);
  language::Diagnostic *reportMlir(const std::string &text, language::Diagnostics &diagnostics) const;
  void keep(const language::Diagnostics &diagnostics, const std::string &where);

  const language::SyntaxTree &kernel;
  TemplateHeader header;
  const language::LibraryResolver &libraries;
  const TileFiles &files;
  bool explains;
  mlir::MLIRContext context;
  std::vector<Message> kept;
  size_t errorCount = 0, programCount = 0;
  std::string explanationText;
};

} // namespace nsa
