// A program of the tile language that is typed: lowering it to the tile dialect gives a module that holds to the
// dialect's rules, or a message, and ends.
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/language_program.h"

#include "compiler/dialect/Diagnostics.h"
#include "compiler/dialect/TileProgram.h"
#include "compiler/language/lowering/Lower.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

namespace nsa::fuzz {
namespace {

mlir::DialectRegistry dialects() {
  mlir::DialectRegistry registry;
  tile::registerTileProgramDialects(registry);
  return registry;
}

void runLowering(std::string_view input) {
  LanguageProgram program(input);
  if (program.diagnostics.hasErrors() || !program.tree->kernel)
    return;
  // Types and constants stay in a context.
  mlir::MLIRContext context(dialects(), mlir::MLIRContext::Threading::DISABLED);
  for (const bool isGpu : {true, false}) {
    language::Diagnostics diagnostics;
    const language::GivenValues values = program.values(isGpu);
    const auto module =
        language::lowerTileProgram(*program.tree, program.libraries(), values, context, diagnostics);
    program.checkMessages(diagnostics);
    expect(static_cast<bool>(module) != diagnostics.hasErrors(), "a program is lowered or refused");
    const tile::DiagnosticText text(context);
    expect(!module || mlir::succeeded(mlir::verify(*module)), "a module holds to the rules of the dialect: " + text.text());
  }
}

const Registration kLowering({"lowering", runLowering});

} // namespace
} // namespace nsa::fuzz
