#include "compiler/dialect/TileProgram.h"

#include "compiler/dialect/Diagnostics.h"
#include "compiler/dialect/Tile.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace nsa::tile {

// MLIR drops the names of values. The state of the parser still knows where each value was defined. So the names are
// read from the text again and stored as locations, which every rewrite keeps: a NameLoc for a single result or an
// argument, and for several results a FusedLoc whose metadata is the list of names.
namespace {

// The name at the definition `%name`; empty if it is a number.
StringRef nameAt(SMRange range) {
  StringRef text(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
  text.consume_front("%");
  return text.empty() || llvm::isDigit(text.front()) ? StringRef() : text;
}

void nameResults(const AsmParserState::OperationDefinition &definition) {
  Operation *op = definition.op;
  Builder builder(op->getContext());
  SmallVector<std::string> names(op->getNumResults());
  for (auto [i, group] : llvm::enumerate(definition.resultGroups)) {
    unsigned end =
        i + 1 < definition.resultGroups.size() ? definition.resultGroups[i + 1].startIndex : op->getNumResults();
    StringRef name = nameAt(group.definition.loc);
    for (unsigned index = group.startIndex; index < end && !name.empty(); ++index)
      names[index] = end - group.startIndex == 1 ? name.str() : (name + "_" + Twine(index - group.startIndex)).str();
  }
  if (names.size() == 1 && !names[0].empty()) {
    op->setLoc(NameLoc::get(builder.getStringAttr(names[0]), op->getLoc()));
  } else if (names.size() > 1) {
    SmallVector<StringRef> views(names.begin(), names.end());
    op->setLoc(FusedLoc::get(op->getContext(), {op->getLoc()}, builder.getStrArrayAttr(views)));
  }
}

void nameArguments(const AsmParserState::BlockDefinition &definition) {
  for (auto [argument, place] : llvm::zip(definition.block->getArguments(), definition.arguments)) {
    StringRef name = nameAt(place.loc);
    if (!name.empty())
      argument.setLoc(NameLoc::get(StringAttr::get(argument.getContext(), name), argument.getLoc()));
  }
}

} // namespace

void registerTileProgramDialects(DialectRegistry &registry) {
  registry.insert<TileDialect, arith::ArithDialect, func::FuncDialect, math::MathDialect, scf::SCFDialect>();
}

OwningOpRef<ModuleOp> parseTileProgram(StringRef text, StringRef file, MLIRContext &context, std::string &diagnostics) {
  DiagnosticText collector(context);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, file), SMLoc());

  Block block;
  AsmParserState state;
  if (failed(parseAsmSourceFile(sources, &block, ParserConfig(&context), &state))) {
    diagnostics = collector.text();
    return {};
  }
  for (const AsmParserState::OperationDefinition &definition : state.getOpDefs())
    nameResults(definition);
  for (const AsmParserState::BlockDefinition &definition : state.getBlockDefs())
    nameArguments(definition);

  Location start = FileLineColLoc::get(&context, file, 1, 1);
  OwningOpRef<ModuleOp> module =
      mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(&block, &context, start);
  auto isProgram = [](ModuleOp module) {
    auto function =
        llvm::hasSingleElement(*module.getBody()) ? dyn_cast<func::FuncOp>(module.getBody()->front()) : nullptr;
    return function && !function.isExternal();
  };
  if (module && !isProgram(*module)) {
    emitError(start, "a tile program is exactly one func.func");
    module = nullptr;
  }
  // Operations that accept values of any type, such as scf.if, could make a view. The targets can find the slots of a
  // view only if it is an argument or the result of arith.select.
  if (module && module
                    ->walk([](Operation *op) {
                      if (isa<arith::SelectOp>(op) || llvm::none_of(op->getResultTypes(), llvm::IsaPred<ViewType>))
                        return WalkResult::advance();
                      op->emitOpError("makes a view; views are arguments, or chosen from them by arith.select");
                      return WalkResult::interrupt();
                    })
                    .wasInterrupted())
    module = nullptr;
  if (!module)
    diagnostics = collector.text();
  return module;
}

std::string sourceName(Value value) {
  Location loc = value.getLoc();
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  auto result = dyn_cast<OpResult>(value);
  auto fused = dyn_cast<FusedLoc>(loc);
  auto names = fused ? dyn_cast_or_null<ArrayAttr>(fused.getMetadata()) : ArrayAttr();
  // A rewrite that drops results keeps the location. The list then no longer tells which name belongs to which result.
  if (!result || !names || names.size() != result.getOwner()->getNumResults())
    return {};
  return cast<StringAttr>(names[result.getResultNumber()]).str();
}

} // namespace nsa::tile
