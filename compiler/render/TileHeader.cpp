#include "compiler/render/TileHeader.h"

#include "compiler/render/HeaderBuilder.h"

#include <algorithm>
#include <utility>

namespace nsa {

namespace {

using namespace language;

std::string textOf(const Expr &expr) { return inOneLine(expr.range); }

class TileHeaderReader : HeaderBuilder {
public:
  TileHeaderReader(const SyntaxTree &tree, bool isLaunched, bool isProgram = false)
      : HeaderBuilder(tree.source->name(), TemplateKind::kTile), tree(tree), isLaunched(isLaunched),
        isProgram(isProgram) {
    if (!isProgram)
      return;
    scalars.emplace();
    for (const Item *item : tree.items)
      if (const auto *declared = asIf<ScalarItem>(item))
        for (const Field &scalar : declared->scalars)
          scalars->emplace(scalar.name.text);
  }

  Result<TemplateHeader> run() {
    for (const Item *item : tree.items) {
      place.line = static_cast<int>(item->range.position().line);
      NSA_RETURN_IF_ERROR(read(*item));
    }
    place.line = 1;
    if (!hasGrid && isLaunched)
      return fail("the kernel declares no grid", "write grid block = n, head = m, 1");
    if (!header.threads.isPresent())
      return fail("the kernel declares no threads", "write threads 32 * warps");
    return std::move(header);
  }

private:
  Status read(const Item &item) {
    switch (item.kind) {
    case ItemKind::kKernel:
      return readKernel(as<KernelItem>(item));
    case ItemKind::kTargets:
      header.targetsPlace = place;
      for (const Name &name : as<TargetsItem>(item).targets)
        header.targets.emplace_back(name.text);
      return Status::ok();
    case ItemKind::kReference:
      if (!isLaunched || isProgram)
        return Status::ok();
      return fail("'reference' stands in a kernel that serves an operator",
                  "the tuner compares the kernels of an operator with each other");
    case ItemKind::kFixed: {
      const auto &fixed = as<FixedItem>(item);
      for (const Name &name : fixed.names)
        NSA_RETURN_IF_ERROR(addFixed(name.text, fixed.when ? textOf(*fixed.when) : ""));
      return Status::ok();
    }
    case ItemKind::kConst:
      for (const Binding &binding : as<ConstItem>(item).bindings)
        NSA_RETURN_IF_ERROR(addConstant(binding.name.text, textOf(*binding.value)));
      return Status::ok();
    case ItemKind::kChoice:
      for (const ChoiceItem::Choice &choice : as<ChoiceItem>(item).choices) {
        NSA_RETURN_IF_ERROR(addChoice(choice.name.text));
        for (const NumberExpr *value : choice.values)
          NSA_RETURN_IF_ERROR(addChoiceValue(value->integer));
      }
      return Status::ok();
    case ItemKind::kRequire:
      return addRequire(textOf(*as<RequireItem>(item).condition));
    case ItemKind::kCost:
      return readOnce("cost", *as<CostItem>(item).value, header.cost);
    case ItemKind::kThreads:
      return readThreads(as<ThreadsItem>(item));
    case ItemKind::kGrid:
      if (!isLaunched)
        return Status::ok();
      return readGrid(as<GridItem>(item));
    default:
      return Status::ok(); // for the body
    }
  }

  Status readThreads(const ThreadsItem &item) {
    NSA_RETURN_IF_ERROR(readOnce("threads", *item.value, header.threads));
    return item.blocks ? readOnce("threads", *item.blocks, header.blocks) : Status::ok();
  }

  Status readKernel(const KernelItem &item) {
    header.name = std::string(item.name.text);
    if (!isLaunched)
      return Status::ok();
    if (isProgram && !item.operators.empty())
      return fail("kernel " + quoted(header.name) + " serves an operator, and a program of one's own serves none",
                  "run it as a template of the operator, or leave out 'serves'");
    if (!isProgram && item.operators.empty())
      return fail("kernel " + quoted(header.name) + " serves no operator", "write kernel NAME serves OPERATOR");
    for (const Name &name : item.operators)
      NSA_RETURN_IF_ERROR(addOperator(name.text));
    return Status::ok();
  }

  Status readOnce(std::string_view key, const Expr &value, TemplateHeader::Line &line) const {
    if (line.isPresent())
      return fail(quoted(key) + " stands twice");
    return parseLine(textOf(value), line);
  }

  // A dimension of several parts has as many programs as their product.
  Status readGrid(const GridItem &grid) {
    if (std::exchange(hasGrid, true))
      return fail("'grid' stands twice");
    if (grid.dimensions.size() != std::size(header.grid))
      return fail("a grid has three dimensions, found " + std::to_string(grid.dimensions.size()),
                  "a dimension that is not needed is 1");
    for (size_t axis = 0; axis < grid.dimensions.size(); ++axis) {
      std::string text;
      for (const Binding &part : grid.dimensions[axis].parts) {
        const bool isFactor = part.value->kind == ExprKind::kName || part.value->kind == ExprKind::kNumber ||
                              part.value->kind == ExprKind::kCall || grid.dimensions[axis].parts.size() == 1;
        text.append(text.empty() ? "" : " * ");
        text.append(isFactor ? textOf(*part.value) : "(" + textOf(*part.value) + ")");
      }
      header.grid[axis].place = place;
      NSA_RETURN_IF_ERROR(parseExpression(text.empty() ? "1" : text, /*atLaunch=*/true, header.grid[axis].expression));
    }
    return Status::ok();
  }

  const SyntaxTree &tree;
  bool isLaunched; // its operators and its grid are read, too
  bool isProgram;
  bool hasGrid = false;
};

std::string placeOf(const SourceRange &range) {
  if (!range.file)
    return "";
  const SourcePosition at = range.position();
  return range.file->name() + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

} // namespace

Result<TemplateHeader> readTileHeader(const SyntaxTree &kernel, TileHeaderOf what) {
  return TileHeaderReader(kernel, true, what == TileHeaderOf::kProgram).run();
}

Result<TemplateHeader> readTileChoices(const SyntaxTree &kernel) { return TileHeaderReader(kernel, false).run(); }

Status templateError(const Diagnostics &diagnostics) {
  ErrorInfo info{.code = ErrorCode::kCompileFailed, .field = "template"};
  for (const Diagnostic &message : diagnostics.list()) {
    if (message.severity != Severity::kError)
      continue;
    if (info.rule.empty()) {
      info.value = placeOf(message.range);
      info.rule = message.text;
      info.hint = message.hintText;
    } else {
      info.rule += "; " + placeOf(message.range) + ": error: " + message.text;
    }
    for (const Diagnostic::Note &note : message.notes)
      info.rule += "; " + placeOf(note.range) + (note.range.file ? ": note: " : "note: ") + note.text;
  }
  return Status(std::move(info));
}

Status programError(const Diagnostics &diagnostics, const std::string &file,
                    const std::map<std::string, std::string> &values) {
  std::string settings;
  for (const auto &[name, value] : values)
    settings += " --set " + name + "=" + value;
  return Status(ErrorInfo{.code = ErrorCode::kCompileFailed,
                          .field = "program",
                          .value = file,
                          .rule = "has errors",
                          .message = diagnostics.toString(),
                          .hint = language::hintOfCheck(file, settings)});
}

} // namespace nsa
