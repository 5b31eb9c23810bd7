// The syntax tree of a file of the tile language: what the text says, before names have a meaning. The parser makes it
// (Parser.h). The nodes lie in the tree's arena and point into the text, so the tree and its SourceFile outlive what
// refers to them.
// A node says by its `kind` what it is; as<T> and asIf<T> turn it into the struct of that kind. Each expression has a
// number, so that what is found out about expressions can stand in a vector beside the tree.
// Parentheses around one expression leave no node: they only say which operators belong together.
// Thread-safety: a tree is immutable once it is parsed.
#pragma once

#include "compiler/language/syntax/Arena.h"
#include "compiler/language/syntax/Expressions.h"

namespace nsa::language {

// --- statements

enum class StatementKind : uint8_t {
  kLet,
  kVar,
  kAssign,
  kAdd,
  kCall,
  kIf,
  kFor,
  kForAxis,
  kStore,
  kReport,
  kReturnIf,
  kReturn,
};

struct Statement {
  StatementKind kind;
  SourceRange range;
};

struct Block {
  SourceRange range; // with its braces
  std::span<const Statement *const> statements;
};

// `name`, or `(a, b)` for the elements of a tuple
struct Target {
  SourceRange range;
  bool isTuple;
  NameList names;
};

// `let a = .., (b, c) = ..`
struct LetStatement : Statement {
  struct Binding {
    Target target;
    const Expr *value;
  };

  static constexpr StatementKind kKind = StatementKind::kLet;
  std::span<const Binding> bindings;
};

// `var a: [row] = .., b = ..`
struct VarStatement : Statement {
  struct Variable {
    Name name;
    const TypeSyntax *type; // nullptr: the value's
    const Expr *value;
  };

  static constexpr StatementKind kKind = StatementKind::kVar;
  std::span<const Variable> variables;
};

// `x = ..`, `(x, y) = ..`
struct AssignStatement : Statement {
  static constexpr StatementKind kKind = StatementKind::kAssign;
  Target target;
  const Expr *value;
};

// `x += ..`
struct AddStatement : Statement {
  static constexpr StatementKind kKind = StatementKind::kAdd;
  Name target;
  SourceRange opRange;
  const Expr *value;
};

// `insert(best, scores, index)`
struct CallStatement : Statement {
  static constexpr StatementKind kKind = StatementKind::kCall;
  const CallExpr *call;
};

struct IfStatement : Statement {
  static constexpr StatementKind kKind = StatementKind::kIf;
  const Expr *condition;
  Block then;
  const Block *otherwise; // nullptr: none. `else if` is a block of this one statement
};

// `for index in low .. high by axis`, `.. step n`
struct ForStatement : Statement {
  static constexpr StatementKind kKind = StatementKind::kFor;
  Name index;
  const Expr *low, *high;
  Name by;          // empty: not by an axis
  const Expr *step; // nullptr: 1, or the extent of the axis
  ScheduleList schedules;
  Block body;
};

// `static for index in axis`
struct ForAxisStatement : Statement {
  static constexpr StatementKind kKind = StatementKind::kForAxis;
  bool isStatic;
  Name index, axis;
  Block body;
};

// `store place = value`, `store unique place = value`
struct StoreStatement : Statement {
  static constexpr StatementKind kKind = StatementKind::kStore;
  bool isUnique; // the writer promises that no two rows have one place
  Place place;
  const Expr *value;
};

// `report code at place if condition`
struct ReportStatement : Statement {
  static constexpr StatementKind kKind = StatementKind::kReport;
  const Expr *code, *place, *condition;
};

// `return if condition`: at the top level of a kernel
struct ReturnIfStatement : Statement {
  static constexpr StatementKind kKind = StatementKind::kReturnIf;
  const Expr *condition;
};

// `return value`: the last statement of a function
struct ReturnStatement : Statement {
  static constexpr StatementKind kKind = StatementKind::kReturn;
  const Expr *value;
};

// --- declarations

enum class ItemKind : uint8_t {
  kKernel,
  kLibrary,
  kImport,
  kTargets,
  kReference,
  kFixed,
  kConst,
  kChoice,
  kRequire,
  kCost,
  kWork,
  kThreads,
  kGrid,
  kAxis,
  kTensor,
  kScalar,
  kRecord,
  kCode,
  kFunction,
  kStatement,
};

struct Item {
  ItemKind kind;
  SourceRange range;
};

// `name = value`
struct Binding {
  Name name;
  const Expr *value;
};
using BindingList = std::span<const Binding>;

// `kernel attention serves dense, window`
struct KernelItem : Item {
  static constexpr ItemKind kKind = ItemKind::kKernel;
  Name name;
  NameList operators; // empty: a program of one's own
};

struct LibraryItem : Item {
  static constexpr ItemKind kKind = ItemKind::kLibrary;
  Name name;
};

struct ImportItem : Item {
  static constexpr ItemKind kKind = ItemKind::kImport;
  NameList libraries;
};

struct TargetsItem : Item {
  static constexpr ItemKind kKind = ItemKind::kTargets;
  NameList targets;
};

// `reference plain_attention` or `reference key_tile = 16, warps = 1`: with whose result the tuner compares
struct ReferenceItem : Item {
  struct Choice {
    Name name;
    const NumberExpr *value;
  };

  static constexpr ItemKind kKind = ItemKind::kReference;
  Name kernel; // empty: the kernel itself, with these choices
  std::span<const Choice> choices;
};

// `fixed cmp_block, cmp_stride when op == cmp`
struct FixedItem : Item {
  static constexpr ItemKind kKind = ItemKind::kFixed;
  NameList names;
  const Expr *when; // nullptr: always
};

struct ConstItem : Item {
  static constexpr ItemKind kKind = ItemKind::kConst;
  BindingList bindings;
};

// `choice stages = 1 | 2, warps = 4`
struct ChoiceItem : Item {
  struct Choice {
    Name name;
    std::span<const NumberExpr *const> values;
  };

  static constexpr ItemKind kKind = ItemKind::kChoice;
  std::span<const Choice> choices;
};

struct RequireItem : Item {
  static constexpr ItemKind kKind = ItemKind::kRequire;
  const Expr *condition;
};

struct CostItem : Item {
  static constexpr ItemKind kKind = ItemKind::kCost;
  const Expr *value;
};

// `work flops = 2 * rows * columns, bytes = n`: what a call does
struct WorkItem : Item {
  static constexpr ItemKind kKind = ItemKind::kWork;
  BindingList bindings;
};
inline constexpr std::string_view kWorkFlops = "flops", kWorkBytes = "bytes";

// `threads 32 * warps, 3`: the number behind the comma may be absent
struct ThreadsItem : Item {
  static constexpr ItemKind kKind = ItemKind::kThreads;
  const Expr *value, *blocks;
};

// `grid (query = n, chunk = m), head = h, 1`: in a dimension of several, the first one is the slowest
struct GridItem : Item {
  struct Dimension {
    SourceRange range;
    BindingList parts; // empty: the dimension is `1`
  };

  static constexpr ItemKind kKind = ItemKind::kGrid;
  std::span<const Dimension> dimensions;
};

// `axis row = n, branch = 3 outer`
struct AxisItem : Item {
  struct Axis {
    Name name;
    const Expr *extent;
    bool isOuter;
  };

  static constexpr ItemKind kKind = ItemKind::kAxis;
  std::span<const Axis> axes;
};

// `tensor (k, v)[entry, time: tokens; d: n]: f32 optional inout paged(n)`
struct TensorItem : Item {
  struct Declaration {
    SourceRange range;
    NameList names; // all of the same shape
    NameList coordinates;
    ExprList extents;    // of the coordinates; nullptr: nothing is said
    Name column;         // empty: rows have one element
    const Expr *columns; // nullptr: as many as the axis `column` has
    Name element;        // empty: the call's element type, io
    bool isOptional, isInout;
    const Expr *pageSize; // nullptr: not paged
  };

  static constexpr ItemKind kKind = ItemKind::kTensor;
  std::span<const Declaration> tensors;
};

// `a: i32`. Of `a, b: i32` each name is a field of its own.
struct Field {
  Name name;
  const TypeSyntax *type;
};
using FieldList = std::span<const Field>;

struct ScalarItem : Item {
  static constexpr ItemKind kKind = ItemKind::kScalar;
  FieldList scalars;
};

struct RecordItem : Item {
  static constexpr ItemKind kKind = ItemKind::kRecord;
  Name name;
  FieldList fields;
};

// `code malformed_list = 6`
struct CodeItem : Item {
  static constexpr ItemKind kKind = ItemKind::kCode;
  BindingList bindings;
};

// `fn name[axes](parameters) -> type { .. }`
struct FunctionItem : Item {
  struct Parameter {
    Name name;
    const TypeSyntax *type; // nullptr: anything
  };

  static constexpr ItemKind kKind = ItemKind::kFunction;
  Name name;
  NameList axes;
  std::span<const Parameter> parameters;
  const TypeSyntax *result; // nullptr: what is returned
  Block body;
};

// A statement of the kernel's body.
struct StatementItem : Item {
  static constexpr ItemKind kKind = ItemKind::kStatement;
  const Statement *statement;
};

struct SyntaxTree {
  const SourceFile *source = nullptr;
  std::span<const Item *const> items; // in the order of the file
  // What the file is: the first item is one of these, and the only one of its kind. Both are nullptr after an error.
  const KernelItem *kernel = nullptr;
  const LibraryItem *library = nullptr;
  uint32_t expressionCount = 0;
  Arena arena;
};

} // namespace nsa::language
