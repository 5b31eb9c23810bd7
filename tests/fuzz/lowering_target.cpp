// A program of the tile language that is typed: lowering it to the tile dialect gives a module or a message, and
// the rules of the dialect can be looked at.
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
    const auto module = language::lowerTileProgram(*program.tree, program.libraries(), values, context, diagnostics);
    program.checkMessages(diagnostics);
    expect(static_cast<bool>(module) != diagnostics.hasErrors(), "a program is lowered or refused");
    const tile::DiagnosticText text(context);
    // What breaks a rule of the dialect is reported where it is compiled.
    expect(!module || mlir::succeeded(mlir::verify(*module)) || !text.text().empty(), "a breach of a rule is said");
  }
}

const Registration kLowering({"lowering", runLowering});

} // namespace
} // namespace nsa::fuzz
