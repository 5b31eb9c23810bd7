#include "tests/unit/dialect/tile_text.h"

#include "compiler/dialect/Diagnostics.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace nsa::test {

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

OwningOpRef<ModuleOp> parseTileText(StringRef text, StringRef file, MLIRContext &context, std::string &diagnostics) {
  tile::DiagnosticText collector(context);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, file), SMLoc());
  Block block;
  AsmParserState state;
  OwningOpRef<ModuleOp> module;
  if (succeeded(parseAsmSourceFile(sources, &block, ParserConfig(&context), &state))) {
    for (const AsmParserState::OperationDefinition &definition : state.getOpDefs())
      nameResults(definition);
    for (const AsmParserState::BlockDefinition &definition : state.getBlockDefs())
      nameArguments(definition);
    module = mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
        &block, &context, FileLineColLoc::get(&context, file, 1, 1));
  }
  diagnostics = collector.text();
  return module;
}

} // namespace nsa::test
