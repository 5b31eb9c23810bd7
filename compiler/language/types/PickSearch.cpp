#include "compiler/language/types/PickSearch.h"

#include <algorithm>
#include <vector>

namespace nsa::language {

namespace {

class PickSearch {
public:
  explicit PickSearch(std::string_view name) : name(name) {}

  bool inStatements(std::span<const Statement *const> list) {
    return std::ranges::any_of(list, [&](const Statement *statement) { return inStatement(*statement); });
  }

private:
  bool inBlock(const Block *block) { return block && inStatements(block->statements); }

  bool inStatement(const Statement &statement) {
    switch (statement.kind) {
    case StatementKind::kLet:
      return std::ranges::any_of(as<LetStatement>(statement).bindings,
                                 [&](const LetStatement::Binding &binding) { return in(binding.value); });
    case StatementKind::kVar:
      return std::ranges::any_of(as<VarStatement>(statement).variables,
                                 [&](const VarStatement::Variable &variable) { return in(variable.value); });
    case StatementKind::kAssign:
      return in(as<AssignStatement>(statement).value);
    case StatementKind::kAdd:
      return in(as<AddStatement>(statement).value);
    case StatementKind::kCall:
      return in(as<CallStatement>(statement).call);
    case StatementKind::kIf:
      return in(as<IfStatement>(statement).condition) || inBlock(&as<IfStatement>(statement).then) ||
             inBlock(as<IfStatement>(statement).otherwise);
    case StatementKind::kFor:
      return inBlock(&as<ForStatement>(statement).body);
    case StatementKind::kForAxis: {
      const auto &loop = as<ForAxisStatement>(statement);
      if (loop.isStatic)
        known.push_back(loop.index.text);
      return inBlock(&loop.body);
    }
    case StatementKind::kStore:
      return in(as<StoreStatement>(statement).value);
    default:
      return false;
    }
  }

  bool inAny(ExprList list) {
    return std::ranges::any_of(list, [&](const Expr *expr) { return in(expr); });
  }

  bool in(const Expr *expr) {
    if (!expr)
      return false;
    switch (expr->kind) {
    case ExprKind::kPick: {
      const auto &pick = as<PickExpr>(*expr);
      const auto *base = asIf<NameExpr>(pick.base);
      const auto *index = asIf<NameExpr>(pick.index);
      const bool isKnown =
          pick.index->kind == ExprKind::kNumber || (index && std::ranges::find(known, index->text) != known.end());
      return (base && base->text == name && !isKnown) || in(pick.base) || in(pick.index);
    }
    case ExprKind::kTuple:
      return inAny(as<TupleExpr>(*expr).elements);
    case ExprKind::kUnary:
      return in(as<UnaryExpr>(*expr).operand);
    case ExprKind::kBinary:
      return in(as<BinaryExpr>(*expr).left) || in(as<BinaryExpr>(*expr).right);
    case ExprKind::kConditional:
      return in(as<ConditionalExpr>(*expr).condition) || in(as<ConditionalExpr>(*expr).ifTrue) ||
             in(as<ConditionalExpr>(*expr).ifFalse);
    case ExprKind::kCast:
      return in(as<CastExpr>(*expr).value);
    case ExprKind::kCall:
      return inAny(as<CallExpr>(*expr).arguments);
    default:
      return false;
    }
  }

  std::string_view name;
  std::vector<std::string_view> known; // indices of static loops
};

} // namespace

bool picksAtRunTime(std::span<const Statement *const> statements, std::string_view name) {
  return PickSearch(name).inStatements(statements);
}

} // namespace nsa::language
