#include "runtime/model/operators.h"

#include <algorithm>

namespace nsa {

const OperatorDef *findOperator(std::string_view name) {
  const auto found = std::ranges::find(operatorTable(), name, &OperatorDef::name);
  return found == operatorTable().end() ? nullptr : &*found;
}

const OperatorDef *findPublicOperator(int abi) {
  const std::span<const OperatorDef> operators = publicOperators();
  return abi >= 0 && static_cast<size_t>(abi) < operators.size() ? &operators[static_cast<size_t>(abi)] : nullptr;
}

bool OperatorDef::mayTake(View view) const {
  return operandOf(view) || view == View::kSequences || view == View::kStatus ||
         std::ranges::find(planViews, view) != planViews.end();
}

std::vector<std::string_view> OperatorDef::viewNames() const {
  std::vector<std::string_view> names;
  for (int i = 0; i < kViews; ++i)
    if (mayTake(static_cast<View>(i)))
      names.push_back(viewRule(static_cast<View>(i)).name);
  return names;
}

const Operand *OperatorDef::operandOf(View view) const {
  const auto found = std::ranges::find(operands, view, &Operand::view);
  return found == operands.end() ? nullptr : &*found;
}

const Operand *OperatorDef::operandOf(TensorName tensor) const {
  const auto found = std::ranges::find(operands, tensor, &Operand::name);
  return found == operands.end() ? nullptr : &*found;
}

bool OperatorDef::sumsOverTokens() const {
  return std::ranges::any_of(operands, [](const Operand &operand) {
    return operand.isWritten() && tensorRule(operand.name).lead == Lead::kNone;
  });
}

const OperatorDef *findGradient(Operator op) {
  const std::span<const OperatorDef> operators = publicOperators();
  const auto found =
      std::ranges::find_if(operators, [op](const OperatorDef &def) { return def.gradientOf == op && def.op != op; });
  return found == operators.end() ? nullptr : &*found;
}

std::string namesOf(std::span<const OperatorDef> operators) {
  std::string names;
  for (const OperatorDef &def : operators)
    names.append(names.empty() ? "" : ", ").append(def.name);
  return names;
}

bool isTuned(std::string_view op) {
  const OperatorDef *found = findOperator(op);
  return !found || isTuned(found->op);
}

} // namespace nsa
