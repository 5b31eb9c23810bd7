#include "tests/unit/language/syntax_text.h"

#include <charconv>
#include <cmath>

namespace nsa::language {
namespace {

std::string numberText(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return "inf";
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  return {digits, end};
}

std::string_view signOf(BinaryOp op) {
  constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||"};
  return kSigns[static_cast<size_t>(op)];
}

class Writer {
public:
  std::string out;

  void expr(const Expr *node) {
    if (!node) {
      word("-");
      return;
    }
    switch (node->kind) {
    case ExprKind::kNumber: {
      const auto &number = as<NumberExpr>(*node);
      word(number.isInteger ? std::to_string(number.integer) : "f" + numberText(number.real));
      return;
    }
    case ExprKind::kBool:
      word(as<BoolExpr>(*node).value ? "true" : "false");
      return;
    case ExprKind::kName:
      word(as<NameExpr>(*node).text);
      return;
    case ExprKind::kTuple:
      open("tuple");
      list(as<TupleExpr>(*node).elements);
      break;
    case ExprKind::kUnary:
      open(as<UnaryExpr>(*node).op == UnaryOp::kNegate ? "neg" : "not");
      expr(as<UnaryExpr>(*node).operand);
      break;
    case ExprKind::kBinary:
      open(signOf(as<BinaryExpr>(*node).op));
      expr(as<BinaryExpr>(*node).left);
      expr(as<BinaryExpr>(*node).right);
      break;
    case ExprKind::kIn:
      open("in");
      expr(as<InExpr>(*node).value);
      expr(as<InExpr>(*node).low);
      expr(as<InExpr>(*node).high);
      break;
    case ExprKind::kBelow:
      open("below");
      expr(as<BelowExpr>(*node).index);
      expr(as<BelowExpr>(*node).bound);
      break;
    case ExprKind::kConditional:
      open("?");
      expr(as<ConditionalExpr>(*node).condition);
      expr(as<ConditionalExpr>(*node).ifTrue);
      expr(as<ConditionalExpr>(*node).ifFalse);
      break;
    case ExprKind::kCast:
      open("as");
      expr(as<CastExpr>(*node).value);
      name(as<CastExpr>(*node).element);
      break;
    case ExprKind::kField:
      open(".");
      expr(as<FieldExpr>(*node).base);
      name(as<FieldExpr>(*node).field);
      break;
    case ExprKind::kPick:
      open("pick");
      expr(as<PickExpr>(*node).base);
      name(as<PickExpr>(*node).axis);
      expr(as<PickExpr>(*node).index);
      break;
    case ExprKind::kLoad:
      open("load");
      place(as<LoadExpr>(*node).place);
      schedules(as<LoadExpr>(*node).schedules);
      break;
    case ExprKind::kCall:
      call(as<CallExpr>(*node));
      break;
    }
    close();
  }

  void statement(const Statement &node) {
    switch (node.kind) {
    case StatementKind::kLet:
      open("let");
      for (const LetStatement::Binding &binding : as<LetStatement>(node).bindings) {
        target(binding.target);
        expr(binding.value);
      }
      break;
    case StatementKind::kVar:
      open("var");
      for (const VarStatement::Variable &variable : as<VarStatement>(node).variables) {
        name(variable.name);
        type(variable.type);
        expr(variable.value);
      }
      break;
    case StatementKind::kAssign:
      open("=");
      target(as<AssignStatement>(node).target);
      expr(as<AssignStatement>(node).value);
      break;
    case StatementKind::kAdd:
      open("+=");
      name(as<AddStatement>(node).target);
      expr(as<AddStatement>(node).value);
      break;
    case StatementKind::kCall:
      open("do");
      expr(as<CallStatement>(node).call);
      break;
    case StatementKind::kIf:
      open("if");
      expr(as<IfStatement>(node).condition);
      block(as<IfStatement>(node).then);
      if (as<IfStatement>(node).otherwise)
        block(*as<IfStatement>(node).otherwise);
      break;
    case StatementKind::kFor:
      forLoop(as<ForStatement>(node));
      break;
    case StatementKind::kForAxis:
      open(as<ForAxisStatement>(node).isStatic ? "static-for" : "for-axis");
      name(as<ForAxisStatement>(node).index);
      name(as<ForAxisStatement>(node).axis);
      block(as<ForAxisStatement>(node).body);
      break;
    case StatementKind::kStore:
      open("store");
      if (as<StoreStatement>(node).isUnique)
        word("unique");
      place(as<StoreStatement>(node).place);
      expr(as<StoreStatement>(node).value);
      break;
    case StatementKind::kReport:
      open("report");
      expr(as<ReportStatement>(node).code);
      expr(as<ReportStatement>(node).place);
      expr(as<ReportStatement>(node).condition);
      break;
    case StatementKind::kReturnIf:
      open("return-if");
      expr(as<ReturnIfStatement>(node).condition);
      break;
    case StatementKind::kReturn:
      open("return");
      expr(as<ReturnStatement>(node).value);
      break;
    }
    close();
  }

  void item(const Item &node) {
    switch (node.kind) {
    case ItemKind::kKernel:
      open("kernel");
      name(as<KernelItem>(node).name);
      names(as<KernelItem>(node).operators);
      break;
    case ItemKind::kLibrary:
      open("library");
      name(as<LibraryItem>(node).name);
      break;
    case ItemKind::kImport:
      open("import");
      names(as<ImportItem>(node).libraries);
      break;
    case ItemKind::kTargets:
      open("targets");
      names(as<TargetsItem>(node).targets);
      break;
    case ItemKind::kReference:
      open("reference");
      if (const auto &reference = as<ReferenceItem>(node); reference.choices.empty())
        name(reference.kernel);
      else
        for (const ReferenceItem::Choice &choice : reference.choices) {
          name(choice.name);
          expr(choice.value);
        }
      break;
    case ItemKind::kFixed:
      open("fixed");
      names(as<FixedItem>(node).names);
      expr(as<FixedItem>(node).when);
      break;
    case ItemKind::kConst:
      open("const");
      bindings(as<ConstItem>(node).bindings);
      break;
    case ItemKind::kChoice:
      open("choice");
      for (const ChoiceItem::Choice &choice : as<ChoiceItem>(node).choices) {
        name(choice.name);
        open("");
        for (const NumberExpr *value : choice.values)
          expr(value);
        close();
      }
      break;
    case ItemKind::kRequire:
      open("require");
      expr(as<RequireItem>(node).condition);
      break;
    case ItemKind::kCost:
      open("cost");
      expr(as<CostItem>(node).value);
      break;
    case ItemKind::kWork:
      open("work");
      bindings(as<WorkItem>(node).bindings);
      break;
    case ItemKind::kThreads:
      open("threads");
      expr(as<ThreadsItem>(node).value);
      if (as<ThreadsItem>(node).blocks)
        expr(as<ThreadsItem>(node).blocks);
      break;
    case ItemKind::kGrid:
      open("grid");
      for (const GridItem::Dimension &dimension : as<GridItem>(node).dimensions) {
        open("");
        bindings(dimension.parts);
        close();
      }
      break;
    case ItemKind::kAxis:
      open("axis");
      for (const AxisItem::Axis &axis : as<AxisItem>(node).axes) {
        name(axis.name);
        expr(axis.extent);
        if (axis.isOuter)
          word("outer");
      }
      break;
    case ItemKind::kTensor:
      open("tensor");
      for (const TensorItem::Declaration &declaration : as<TensorItem>(node).tensors)
        tensor(declaration);
      break;
    case ItemKind::kScalar:
      open("scalar");
      fields(as<ScalarItem>(node).scalars);
      break;
    case ItemKind::kRecord:
      open("record");
      name(as<RecordItem>(node).name);
      fields(as<RecordItem>(node).fields);
      break;
    case ItemKind::kCode:
      open("code");
      bindings(as<CodeItem>(node).bindings);
      break;
    case ItemKind::kFunction:
      function(as<FunctionItem>(node));
      break;
    case ItemKind::kStatement:
      statement(*as<StatementItem>(node).statement);
      return;
    }
    close();
  }

private:
  void word(std::string_view text) {
    if (!out.empty() && out.back() != '(' && out.back() != '\n')
      out += ' ';
    out += text;
  }
  void open(std::string_view kind) {
    word("(");
    out += kind;
  }
  void close() { out += ')'; }

  void name(const Name &node) { word(node.isEmpty() ? "-" : node.text); }
  void names(NameList nodes) {
    open("");
    for (const Name &node : nodes)
      name(node);
    close();
  }
  void list(ExprList nodes) {
    for (const Expr *node : nodes)
      expr(node);
  }
  void bindings(BindingList nodes) {
    for (const Binding &node : nodes) {
      name(node.name);
      expr(node.value);
    }
  }
  void fields(FieldList nodes) {
    for (const Field &node : nodes) {
      name(node.name);
      type(node.type);
    }
  }
  void type(const TypeSyntax *node) {
    if (!node) {
      word("-");
      return;
    }
    name(node->element);
    if (node->hasAxes)
      names(node->axes);
  }
  void target(const Target &node) {
    if (node.isTuple)
      names(node.names);
    else
      name(node.names[0]);
  }
  void block(const Block &node) {
    open("");
    for (const Statement *inside : node.statements)
      statement(*inside);
    close();
  }
  void schedules(ScheduleList nodes) {
    for (const Schedule &node : nodes) {
      word("@" + std::string(node.name.text));
      expr(node.value);
    }
  }
  void place(const Place &node) {
    open(node.tensor.text);
    if (node.pickIndex) {
      word("[" + std::string(node.pickAxis.text));
      expr(node.pickIndex);
      word("]");
    }
    list(node.coordinates);
    if (node.column) {
      word(";");
      expr(node.column);
    }
    if (node.condition) {
      word("if");
      expr(node.condition);
    }
    close();
  }
  void call(const CallExpr &node) {
    open("call");
    name(node.callee);
    for (const AxisArgument &axis : node.axes)
      word(std::string(axis.parameter.text) + ":" + std::string(axis.axis.text));
    list(node.arguments);
    if (!node.over.empty()) {
      word("over");
      names(node.over);
    }
    if (node.when) {
      word("when");
      expr(node.when);
    }
  }
  void forLoop(const ForStatement &node) {
    open("for");
    name(node.index);
    expr(node.low);
    expr(node.high);
    if (!node.by.isEmpty()) {
      word("by");
      name(node.by);
    }
    if (node.step) {
      word("step");
      expr(node.step);
    }
    schedules(node.schedules);
    block(node.body);
  }
  void tensor(const TensorItem::Declaration &node) {
    names(node.names);
    names(node.coordinates);
    if (!node.column.isEmpty()) {
      word(";");
      name(node.column);
      expr(node.columns);
    }
    name(node.element);
    if (node.isOptional)
      word("optional");
    if (node.isInout)
      word("inout");
    if (node.pageSize) {
      word("paged");
      expr(node.pageSize);
    }
  }
  void function(const FunctionItem &node) {
    open("fn");
    name(node.name);
    names(node.axes);
    open("");
    for (const FunctionItem::Parameter &parameter : node.parameters) {
      name(parameter.name);
      type(parameter.type);
    }
    close();
    type(node.result);
    block(node.body);
  }
};

} // namespace

std::string syntaxText(const SyntaxTree &tree) {
  Writer writer;
  for (const Item *item : tree.items) {
    writer.item(*item);
    writer.out += '\n';
  }
  return std::move(writer.out);
}

std::string syntaxText(const Expr &expr) {
  Writer writer;
  writer.expr(&expr);
  return std::move(writer.out);
}

} // namespace nsa::language
