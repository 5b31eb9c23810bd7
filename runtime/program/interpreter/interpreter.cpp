#include "runtime/program/interpreter/interpreter.h"

#include "runtime/program/interpreter/evaluator.h"

namespace nsa::interpreter {

Result<TileFindings> interpret(const std::vector<const language::SyntaxTree *> &trees, TileCall &call) {
  try {
    return Evaluator(trees, call).run();
  } catch (const Unable &reason) {
    return Status::error(ErrorCode::kUnsupported, "the interpreter cannot go on: " + std::string(reason.what()));
  }
}

} // namespace nsa::interpreter
