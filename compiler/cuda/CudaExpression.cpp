#include "compiler/cuda/CudaExpression.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace nsa::cuda {

using Operands = ArrayRef<CudaExpression>;

StringRef cudaType(Type type) {
  if (type.isInteger(1))
    return "bool";
  if (type.isInteger(32))
    return "int32";
  if (type.isInteger(64))
    return "int64";
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isBF16())
    return "bf16";
  if (type.isF16())
    return "f16";
  if (auto gradient = dyn_cast<tile::GradientType>(type))
    return gradient.getElementType().isF32()    ? "Gradient<float>"
           : gradient.getElementType().isBF16() ? "Gradient<bf16>"
                                                : "Gradient<f16>";
  return "";
}

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

static std::string parenthesized(const CudaExpression &e) { return "(" + e.text + ")"; }

// An And beside an Or gets brackets. C++ does not need them, but readers do.
CudaExpression cudaBinary(const CudaExpression &a, StringRef symbol, const CudaExpression &b, Precedence precedence) {
  bool logical = precedence == Precedence::kAnd || precedence == Precedence::kOr;
  auto side = [&](const CudaExpression &e, bool right) {
    bool tighter = e.precedence < precedence || (e.precedence == precedence && (!right || logical));
    bool mixed = precedence == Precedence::kOr && e.precedence == Precedence::kAnd;
    return tighter && !mixed ? e.text : parenthesized(e);
  };
  return {side(a, false) + " " + symbol.str() + " " + side(b, true), precedence};
}

static CudaExpression unary(StringRef symbol, const CudaExpression &a) {
  // `- -x` must not become `--x`.
  bool plain = a.precedence == Precedence::kPrimary && !StringRef(a.text).starts_with(symbol);
  return {symbol.str() + (plain ? a.text : parenthesized(a)), Precedence::kUnary};
}

static CudaExpression call(StringRef function, Operands arguments) {
  std::string text = function.str() + "(";
  llvm::interleave(arguments, [&](const CudaExpression &e) { text += e.text; }, [&] { text += ", "; });
  return {text + ")"};
}

static CudaExpression staticCast(StringRef type, const CudaExpression &a) {
  return {("static_cast<" + type + ">(" + a.text + ")").str()};
}

CudaExpression cudaSelect(const CudaExpression &condition, const CudaExpression &yes, const CudaExpression &no) {
  auto operand = [](const CudaExpression &e) {
    return e.precedence == Precedence::kConditional ? parenthesized(e) : e.text;
  };
  return {operand(condition) + " ? " + operand(yes) + " : " + no.text, Precedence::kConditional};
}

// The operand as an unsigned number.
static CudaExpression asUnsigned(const CudaExpression &a, Type type) {
  if (llvm::all_of(a.text, [](char c) { return llvm::isDigit(c); }))
    return {a.text + "u"};
  return staticCast(type.isInteger(64) ? "uint64" : "uint32", a);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static CudaExpression floatConstant(const APFloat &value, bool isDouble = false) {
  bool negative = value.isNegative();
  Precedence precedence = negative ? Precedence::kUnary : Precedence::kPrimary;
  if (value.isNaN())
    return {"not_a_number()"};
  if (value.isInfinity())
    return {negative ? "-infinity()" : "infinity()", precedence};
  // Nine digits distinguish all floats, and 17 digits all doubles.
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(isDouble ? "%.17g" : "%.9g", value.convertToDouble());
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return {text + (isDouble ? "" : "f"), precedence};
}

std::optional<CudaExpression> cudaConstant(Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    if (integer.getType().isInteger(1))
      return CudaExpression{integer.getValue().isZero() ? "false" : "true"};
    if (cudaType(integer.getType()).empty())
      return std::nullopt;
    int64_t number = integer.getInt();
    // The most negative number has no literal: `-2147483648` is the negation of a 64-bit number.
    if (number == std::numeric_limits<int32_t>::min() || number == std::numeric_limits<int64_t>::min())
      return cudaBinary({std::to_string(number + 1), Precedence::kUnary}, "-", {"1"}, Precedence::kAdd);
    bool wide = integer.getType().isInteger(64);
    return CudaExpression{std::to_string(number) + (wide ? "ll" : ""),
                          number < 0 ? Precedence::kUnary : Precedence::kPrimary};
  }
  if (auto number = dyn_cast<FloatAttr>(value)) {
    APFloat wide = number.getValue();
    if (number.getType().isF64())
      return floatConstant(wide, /*isDouble=*/true);
    bool lost;
    wide.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
    if (number.getType().isF32())
      return floatConstant(wide);
    StringRef type = cudaType(number.getType());
    if (type.empty())
      return std::nullopt;
    return call(("to<" + type + ">").str(), {floatConstant(wide)});
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

static CudaExpression compare(const CudaExpression &a, StringRef symbol, const CudaExpression &b) {
  return cudaBinary(a, symbol, b, symbol == "==" || symbol == "!=" ? Precedence::kEqual : Precedence::kCompare);
}

static CudaExpression compareIntegers(arith::CmpIOp op, CudaExpression a, CudaExpression b) {
  using P = arith::CmpIPredicate;
  Type type = getElementTypeOrSelf(op.getLhs().getType());
  P predicate = op.getPredicate();
  if (predicate == P::ult || predicate == P::ule || predicate == P::ugt || predicate == P::uge) {
    a = asUnsigned(a, type);
    b = asUnsigned(b, type);
  }
  switch (predicate) {
  case P::eq:
    return compare(a, "==", b);
  case P::ne:
    return compare(a, "!=", b);
  case P::slt:
  case P::ult:
    return compare(a, "<", b);
  case P::sle:
  case P::ule:
    return compare(a, "<=", b);
  case P::sgt:
  case P::ugt:
    return compare(a, ">", b);
  case P::sge:
  case P::uge:
    return compare(a, ">=", b);
  }
  llvm_unreachable("all integer predicates are handled");
}

// The comparisons of C++ are ordered, except for `!=`. An unordered comparison is the negation of the opposite ordered
// one.
static CudaExpression compareFloats(arith::CmpFOp op, const CudaExpression &a, const CudaExpression &b) {
  using P = arith::CmpFPredicate;
  auto differ = [&] { return cudaBinary(compare(a, "<", b), "||", compare(a, ">", b), Precedence::kOr); };
  switch (op.getPredicate()) {
  case P::AlwaysFalse:
    return {"false"};
  case P::AlwaysTrue:
    return {"true"};
  case P::OEQ:
    return compare(a, "==", b);
  case P::OGT:
    return compare(a, ">", b);
  case P::OGE:
    return compare(a, ">=", b);
  case P::OLT:
    return compare(a, "<", b);
  case P::OLE:
    return compare(a, "<=", b);
  case P::ONE:
    return differ();
  case P::ORD:
    return cudaBinary(compare(a, "==", a), "&&", compare(b, "==", b), Precedence::kAnd);
  case P::UEQ:
    return unary("!", differ());
  case P::UGT:
    return unary("!", compare(a, "<=", b));
  case P::UGE:
    return unary("!", compare(a, "<", b));
  case P::ULT:
    return unary("!", compare(a, ">=", b));
  case P::ULE:
    return unary("!", compare(a, ">", b));
  case P::UNE:
    return compare(a, "!=", b);
  case P::UNO:
    return cudaBinary(compare(a, "!=", a), "||", compare(b, "!=", b), Precedence::kOr);
  }
  llvm_unreachable("all float predicates are handled");
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {

// Operations that are one operator of C++, or one function. `logical` replaces the operator on i1.
struct Spelling {
  StringRef symbol;
  Precedence precedence;
  StringRef logical = "";
  Precedence logicalPrecedence = Precedence::kPrimary;
};

std::optional<Spelling> operatorOf(Operation *op) {
  return TypeSwitch<Operation *, std::optional<Spelling>>(op)
      .Case<arith::AddIOp, arith::AddFOp>([](auto) { return Spelling{"+", Precedence::kAdd}; })
      .Case<arith::SubIOp, arith::SubFOp>([](auto) { return Spelling{"-", Precedence::kAdd}; })
      .Case<arith::MulIOp, arith::MulFOp>([](auto) { return Spelling{"*", Precedence::kMultiply}; })
      .Case<arith::DivSIOp, arith::DivFOp>([](auto) { return Spelling{"/", Precedence::kMultiply}; })
      .Case<arith::RemSIOp>([](auto) { return Spelling{"%", Precedence::kMultiply}; })
      .Case<arith::ShLIOp>([](auto) { return Spelling{"<<", Precedence::kShift}; })
      .Case<arith::ShRSIOp>([](auto) { return Spelling{">>", Precedence::kShift}; })
      .Case<arith::AndIOp>([](auto) { return Spelling{"&", Precedence::kBitAnd, "&&", Precedence::kAnd}; })
      .Case<arith::OrIOp>([](auto) { return Spelling{"|", Precedence::kBitOr, "||", Precedence::kOr}; })
      .Case<arith::XOrIOp>([](auto) { return Spelling{"^", Precedence::kBitXor, "!=", Precedence::kEqual}; })
      .Default([](Operation *) { return std::nullopt; });
}

StringRef doubleFunctionOf(Operation *op) {
  return TypeSwitch<Operation *, StringRef>(op)
      .Case<math::Exp2Op>([](auto) { return "exp2"; })
      .Case<math::FmaOp>([](auto) { return "fma"; })
      .Case<math::AbsFOp>([](auto) { return "fabs"; })
      .Case<math::RoundEvenOp>([](auto) { return "rint"; })
      .Default([](Operation *) { return ""; });
}

StringRef functionOf(Operation *op) {
  if (getElementTypeOrSelf(op->getResult(0).getType()).isF64())
    return doubleFunctionOf(op);
  return TypeSwitch<Operation *, StringRef>(op)
      .Case<arith::MinSIOp>([](auto) { return "min"; })
      .Case<arith::MaxSIOp>([](auto) { return "max"; })
      .Case<arith::MinNumFOp>([](auto) { return "min_number"; })
      .Case<arith::MaxNumFOp>([](auto) { return "max_number"; })
      .Case<arith::MinimumFOp>([](auto) { return "min_or_nan"; })
      .Case<arith::MaximumFOp>([](auto) { return "max_or_nan"; })
      .Case<math::Exp2Op>([](auto) { return "exp2_approx"; })
      .Case<math::Log2Op>([](auto) { return "log2_approx"; })
      .Case<math::ErfOp>([](auto) { return "erff"; })
      .Case<math::FmaOp>([](auto) { return "fmaf"; })
      .Case<math::AbsFOp>([](auto) { return "fabsf"; })
      .Case<math::RoundEvenOp>([](auto) { return "rintf"; })
      .Case<math::SqrtOp>([](auto) { return "sqrtf"; })
      .Case<math::RsqrtOp>([](auto) { return "rsqrtf"; })
      .Default([](Operation *) { return ""; });
}

// Whether an operand or the result is a 16-bit float. These types only store values; arithmetic happens in float.
bool isOnStorageType(Operation *op) {
  auto isStorage = [](Type type) { return getElementTypeOrSelf(type).isBF16() || getElementTypeOrSelf(type).isF16(); };
  return llvm::any_of(op->getOperandTypes(), isStorage) || llvm::any_of(op->getResultTypes(), isStorage);
}

} // namespace

std::optional<CudaExpression> cudaExpression(Operation *op, Operands operands) {
  if (op->getNumResults() != 1)
    return std::nullopt;
  Type result = getElementTypeOrSelf(op->getResult(0).getType());
  StringRef type = cudaType(result);
  if (type.empty())
    return std::nullopt;

  if (isa<arith::SelectOp>(op))
    return cudaSelect(operands[0], operands[1], operands[2]);
  const bool isWide = llvm::any_of(op->getOperandTypes(), [](Type type) { return getElementTypeOrSelf(type).isF64(); });
  if (isa<arith::TruncFOp>(op) && isWide && result.isF32())
    return staticCast(type, operands[0]);
  if (isa<arith::ExtFOp>(op) && result.isF64() && getElementTypeOrSelf(op->getOperand(0).getType()).isF32())
    return staticCast(type, operands[0]);
  if (isa<arith::TruncFOp>(op) && !isWide && result.getIntOrFloatBitWidth() == 16)
    return call(("to<" + type + ">").str(), operands);
  if (isa<arith::ExtFOp>(op) && result.isF32())
    return call("to_float", operands);
  if (isOnStorageType(op))
    return std::nullopt;

  if (std::optional<Spelling> spelling = operatorOf(op)) {
    if (!result.isInteger(1))
      return cudaBinary(operands[0], spelling->symbol, operands[1], spelling->precedence);
    if (!spelling->logical.empty())
      return cudaBinary(operands[0], spelling->logical, operands[1], spelling->logicalPrecedence);
    return std::nullopt;
  }
  if (StringRef function = functionOf(op); !function.empty() && !result.isInteger(1))
    return call(function, operands);
  if (auto compareOp = dyn_cast<arith::CmpIOp>(op))
    return compareIntegers(compareOp, operands[0], operands[1]);
  if (auto compareOp = dyn_cast<arith::CmpFOp>(op))
    return compareFloats(compareOp, operands[0], operands[1]);
  if (isa<arith::NegFOp>(op))
    return unary("-", operands[0]);
  // As a signed number an i1 is 0 or -1, but a bool is 0 or 1.
  bool touchesBool = result.isInteger(1) || getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(1);
  if (isa<arith::ExtSIOp, arith::TruncIOp, arith::SIToFPOp, arith::FPToSIOp>(op) && !touchesBool)
    return staticCast(type, operands[0]);
  if (isa<arith::ExtUIOp>(op)) {
    Type source = getElementTypeOrSelf(op->getOperand(0).getType());
    return staticCast(type, source.isInteger(1) ? operands[0] : asUnsigned(operands[0], source));
  }
  if (isa<arith::DivUIOp, arith::RemUIOp, arith::ShRUIOp, arith::MinUIOp, arith::MaxUIOp>(op)) {
    CudaExpression a = asUnsigned(operands[0], result), b = asUnsigned(operands[1], result);
    if (isa<arith::MinUIOp, arith::MaxUIOp>(op))
      return staticCast(type, call(isa<arith::MinUIOp>(op) ? "min" : "max", {a, b}));
    if (isa<arith::ShRUIOp>(op))
      return staticCast(type, cudaBinary(a, ">>", b, Precedence::kShift));
    return staticCast(type, cudaBinary(a, isa<arith::DivUIOp>(op) ? "/" : "%", b, Precedence::kMultiply));
  }
  return std::nullopt;
}

} // namespace nsa::cuda
