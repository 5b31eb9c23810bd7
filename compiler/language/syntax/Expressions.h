// Expressions, places in memory and types of the tile language, as the parser leaves them. Syntax.h has the rest of the
// tree and says how its nodes are owned.
// Thread-safety: a tree is immutable once it is parsed.
#pragma once

#include "compiler/language/syntax/Source.h"

#include <cassert>
#include <cstdint>
#include <span>
#include <string_view>

namespace nsa::language {

// A word that the writer chose, or one of the words of the language that are no names of their own, such as i32.
struct Name {
  std::string_view text;
  SourceRange range;

  bool isEmpty() const { return text.empty(); }
};

template <typename T, typename Node> const T &as(const Node &node) {
  assert(node.kind == T::kKind && "the node is of another kind");
  return static_cast<const T &>(node);
}

// nullptr where the node is none or of another kind.
template <typename T, typename Node> const T *asIf(const Node *node) {
  return node && node->kind == T::kKind ? static_cast<const T *>(node) : nullptr;
}

enum class ExprKind : uint8_t {
  kNumber,
  kBool,
  kName,
  kTuple,
  kUnary,
  kBinary,
  kIn,
  kBelow,
  kConditional,
  kCast,
  kField,
  kPick,
  kLoad,
  kCall,
};

// No tree is higher than this, so recursion over it needs little stack.
inline constexpr uint32_t kMostNesting = 256;

struct Expr {
  ExprKind kind;
  uint16_t height; // of the tree of expressions below, itself included
  uint32_t id;     // less than SyntaxTree::expressionCount
  SourceRange range;
};

using ExprList = std::span<const Expr *const>;
using NameList = std::span<const Name>;

// `7`, `0.5`, `1e-3`, `inf`, `nan`
struct NumberExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kNumber;
  bool isInteger;
  int64_t integer; // 0 if it is none
  double real;     // of an integer, too
};

// `true`, `false`
struct BoolExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kBool;
  bool value;
};

// `seq`. Fixed values, axes, tensors, records and element types are names as well: `i32` of `i32.max` is one.
struct NameExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kName;
  std::string_view text;
};

// `(a, b)`: at least two elements
struct TupleExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kTuple;
  ExprList elements;
};

enum class UnaryOp : uint8_t { kNegate, kNot };

struct UnaryExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kUnary;
  UnaryOp op;
  SourceRange opRange;
  const Expr *operand;
};

enum class BinaryOp : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kEqual,
  kUnequal,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
};

struct BinaryExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kBinary;
  BinaryOp op;
  SourceRange opRange;
  const Expr *left, *right;
};

// `value in low .. high`
struct InExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kIn;
  SourceRange opRange; // of `in`
  const Expr *value, *low, *high;
};

// `index below bound`
struct BelowExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kBelow;
  SourceRange opRange; // of `below`
  const Expr *index, *bound;
};

// `condition ? ifTrue : ifFalse`
struct ConditionalExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kConditional;
  SourceRange opRange; // of `?`
  const Expr *condition, *ifTrue, *ifFalse;
};

// `value as f32`
struct CastExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kCast;
  const Expr *value;
  Name element;
};

// `seq.k_length`, `lse.present`, `Sequence.zero`, `i32.max`
struct FieldExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kField;
  const Expr *base;
  Name field;
};

// `x[branch: b]`
struct PickExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kPick;
  const Expr *base;
  Name axis;
  const Expr *index;
};

// `tensor[coordinates; column if condition]`, behind `load` and `store`
struct Place {
  SourceRange range;
  Name tensor;
  Name pickAxis;         // of `o_of[branch: b][..]`; empty: the tensor is not picked
  const Expr *pickIndex; // nullptr: the same
  ExprList coordinates;
  const Expr *column;    // nullptr: none is given
  const Expr *condition; // nullptr: always
};

// `@stages(n)`
struct Schedule {
  SourceRange range;
  Name name;
  const Expr *value;
};
using ScheduleList = std::span<const Schedule>;

// `load place @shared(n)`
struct LoadExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kLoad;
  Place place;
  ScheduleList schedules;
};

// `row: head` of `gate_values[row: head](x)`: what an axis of the function is at this call
struct AxisArgument {
  Name parameter, axis;
};

// `callee[axes](arguments) over axes when condition`, also a record that is put together of its fields
struct CallExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kCall;
  Name callee;
  std::span<const AxisArgument> axes;
  ExprList arguments;
  NameList over;    // empty: nothing is said
  const Expr *when; // nullptr: nothing is said
};

// `f32[row, e]`, `[row]`, `i32`, `io[key, e]`
struct TypeSyntax {
  SourceRange range;
  Name element;  // empty: nothing is said, which is f32
  bool hasAxes;  // false: a scalar, or a record
  NameList axes; // may be empty: a tile of no axes
};

} // namespace nsa::language
