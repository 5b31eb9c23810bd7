#include "compiler/language/syntax/FindName.h"

#include <initializer_list>

namespace nsa::language {

const NameExpr *findName(const Expr *expr, const std::function<bool(std::string_view)> &matches) {
  const auto firstOf = [&](std::initializer_list<const Expr *> parts) -> const NameExpr * {
    for (const Expr *part : parts)
      if (const NameExpr *found = findName(part, matches))
        return found;
    return nullptr;
  };
  switch (expr->kind) {
  case ExprKind::kName:
    return matches(as<NameExpr>(*expr).text) ? &as<NameExpr>(*expr) : nullptr;
  case ExprKind::kUnary:
    return findName(as<UnaryExpr>(*expr).operand, matches);
  case ExprKind::kBinary:
    return firstOf({as<BinaryExpr>(*expr).left, as<BinaryExpr>(*expr).right});
  case ExprKind::kConditional: {
    const auto &choice = as<ConditionalExpr>(*expr);
    return firstOf({choice.condition, choice.ifTrue, choice.ifFalse});
  }
  case ExprKind::kCall:
    for (const Expr *argument : as<CallExpr>(*expr).arguments)
      if (const NameExpr *found = findName(argument, matches))
        return found;
    return nullptr;
  default:
    return nullptr;
  }
}

} // namespace nsa::language
