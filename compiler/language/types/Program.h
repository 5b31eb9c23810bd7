// A typed program: what the body of a kernel computes for one problem, target and candidate. Functions are inlined, all
// names are resolved, variables are values that branches and loops hand on, and what a constant excludes is left out.
// Types.h makes it, Lower.h turns it into the tile dialect.
// A value is one of
//   scalar   one number of the program
//   formula  an i32 or bool for each place of its axes, made of indices, scalars and loads of i32: it is not computed
//            where it is written, but wherever it is used
//   tile     numbers over axes, computed where it is written
//   tensor, list, and statements, which are values without a type.
// Scalars, tiles and statements stand in the order of the program in a Body; constants and formulas in none.
// Ownership: the program owns all of it. Thread-safety: none while it is made, immutable then.
#pragma once

#include "compiler/language/syntax/Arena.h"
#include "compiler/language/types/Constants.h"

#include <deque>
#include <span>
#include <string_view>
#include <vector>

namespace nsa::language {

// A set of axes: bit n is the axis with the number n, the n-th that was declared.
using AxisSet = uint32_t;
inline constexpr size_t kMostAxes = 32;
inline constexpr AxisSet kAllAxes = ~AxisSet{0};
// A formula is computed wherever it is used, and looked at as a tree.
inline constexpr uint32_t kMostFormulaSize = 512;
// More of them are no program that anything could compile: functions call functions, or static loops are nested.
inline constexpr uint32_t kMostValues = 200'000;
// Places of all outer axes, multiplied: there is a tile for each of them.
inline constexpr int64_t kMostPlaces = 256;
// Deeper than any block.
inline constexpr uint32_t kMostDepth = ~uint32_t{0};

struct Axis {
  std::string_view name;
  SourceRange range;
  int64_t count = 1;  // as declared
  int64_t extent = 1; // of tiles: `count`, padded where a tensor's whole rows lie along the axis
  bool isOuter = false;
  uint8_t number = 0;

  AxisSet bit() const { return AxisSet{1} << number; }
};

// kProduct is what the target's products take: io, or f32 where they take f32.
enum class Element : uint8_t { kNone, kBool, kI32, kI64, kF32, kF64, kIo, kBf16, kF16, kProduct, kGradient };
std::string_view nameOf(Element element);
inline bool isFloat(Element element) { return element >= Element::kF32; }
// Elements of memory, with which arithmetic is done in f32.
inline bool isStorage(Element element) { return element >= Element::kIo; }

struct Record {
  struct Member {
    std::string_view name;
    Element element;
  };
  std::string_view name;
  SourceRange range;
  std::vector<Member> members;
};

struct Tensor {
  std::string_view name;
  SourceRange range;
  NameList coordinates;
  bool hasColumns = false;
  std::string_view columnName;      // of an axis, or of the columns that are counted
  const Axis *columnAxis = nullptr; // its own, of a whole row
  int64_t columns = 1;
  Element element = Element::kIo;
  const Record *record = nullptr;
  bool isOptional = false, isInout = false, isUsed = false;
  int64_t pageRows = 0;
  SourceRange stored; // the first store to it

  // Coordinates of the view: a record's field is one more.
  size_t rank() const { return coordinates.size() + (record != nullptr); }
};

struct ScalarArgument {
  std::string_view name;
  SourceRange range;
  Element element = Element::kI32;
  bool isUsed = false;
};

enum class Form : uint8_t { kScalar, kFormula, kTile, kTensor, kList, kStatement };

enum class Op : uint8_t {
  // leaves
  kConstant,
  kArgument,
  kProgramId, // `index` is the dimension
  kTensor,
  kIota,
  kCarried, // a variable at the begin of a loop's body
  kIndex,   // of a loop
  kChunk,   // the index of a loop by chunks, operand 0, in chunks
  kResult,  // number `index` of what operand 0, a loop or a branch, hands on
  // one element from the same element of each operand
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kMin,
  kMax,
  kEqual,
  kUnequal,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
  kNot,
  kNegate,
  kSelect,
  kCast,
  kFma,
  kExp2,
  kLog2,
  kErf,
  kAbs,
  kSqrt,
  kRoundEven,
  kInRange, // 0 <= x < n
  kBelow,   // x, of which only what is below n exists
  kWiden,   // x over more axes
  // memory
  kPresent,
  kLoad,
  kStore,
  kReport,
  // tiles
  kReduceMax,
  kReduceSum,
  kLast,
  kShift,
  kDot,  // left, right, accumulator or nothing, edge or nothing
  kMask, // x, predicate or nothing, edge
  kFill, // x where operand 1 holds, else `number`
  kTop,
  kInsert,
  kNext,
  kPick, // of a load with stacked rows: load, place along the outer axis
  // control
  kFor,
  kIf,
  kEnds, // where ends of the formula, operand 0, are computed
};

struct Value;

// Of what stands along `axis`, that exists where index < bound.
struct Presence {
  const Axis *axis;
  Value *index, *bound;

  bool operator==(const Presence &) const = default;
};

// A product over one of `axes` has to annihilate where `edge` holds.
struct Taint {
  AxisSet axes;
  Value *edge;

  bool operator==(const Taint &) const = default;
};

struct Body {
  std::vector<Value *> values;
  uint32_t depth = 0; // how many blocks are around it
};

// How a load or a store addresses memory.
struct Access {
  Value *tensor;
  std::span<Value *const> coordinates;
  const Axis *rowAxis;    // of the coordinates; nullptr: none
  const Axis *outerAxis;  // stacked in front of the rows; nullptr: none
  const Axis *columnAxis; // nullptr: rows of one element
  Value *chunk;           // which columns: the number of the tile in its row; nullptr: the columns begin with the row
  Value *columnBound;     // of a chunk: past the last column
  Value *column;          // of a chunk: the index of the columns
  Value *condition;       // nullptr: always
  Value *place;           // of a store, the coordinate that is a tile; nullptr: none
  int64_t staysInShared;  // @shared(n); -1: nothing is said
};

struct Loop {
  Value *low, *high;
  int64_t step;
  Value *index;
  const Axis *by = nullptr; // the axis along which it walks
  bool isByChunk = false;   // the index is the place of columns, so chunks are counted
  int64_t stages = -1;      // -1: nothing is said
  std::span<Value *const> initial, carried, yielded, results;
  Body *body = nullptr;
};

struct Branch {
  Body *then = nullptr, *otherwise = nullptr; // nullptr: nothing is done
  std::span<Value *const> thenYielded, otherwiseYielded, results;
  std::span<const std::string_view> names; // of what it hands on; none: it has no names
};

struct Value {
  Op op;
  Form form;
  Element element;
  AxisSet axes;
  std::span<Value *const> operands;
  SourceRange range;
  std::string_view name;
  std::span<const Presence> presence;
  std::span<const Taint> taints;
  AxisSet zero;   // axes along which what does not exist is known to be 0
  uint32_t order; // in which values were made
  uint32_t parts; // of the grid: those that the value depends on, as bits
  uint32_t
      size; // operations that the value is made of, each counted wherever it is an operand; scalars of formulas are 1
  uint32_t depth; // of the innermost block that it is made in: it can be used in all blocks inside of that one
  // What the operation is besides its operands.
  Constant number;
  const Axis *axis;
  AxisSet over;
  int64_t index;
  Tensor *tensor;
  const ScalarArgument *argument;
  Access *access;
  Loop *loop;
  Branch *branch;
  Body *block; // kEnds: what was asked for
  Value *ends; // of a formula that a let names: its kEnds

  bool isTile() const { return form == Form::kTile; }
};

struct Program {
  std::string_view kernel;
  SourceRange range; // of the kernel's name
  std::deque<Axis> axes;
  std::deque<Record> records;
  std::deque<Tensor> tensors;         // in the order of declaration, the kernel's first
  std::deque<ScalarArgument> scalars; // the same
  int64_t warps = 1;
  std::string_view ioType, productType; // bf16, f16 or f32: of memory, and of what a product takes
  bool isGpu = false;
  Body *body = nullptr;
  std::deque<Body> blocks;
  std::deque<std::string> texts; // names that are made
  uint32_t valueCount = 0;
  Arena arena;

  const Axis *axisNumber(unsigned number) const { return &axes[number]; }
  // The axes of a set, in the order of declaration.
  std::vector<const Axis *> listOf(AxisSet set) const;
  // "[row, key]"
  std::string axesText(AxisSet set) const;
  // "f32[row, key]", "i32"
  std::string typeText(const Value &value) const;
  std::string_view keepText(std::string text) { return texts.emplace_back(std::move(text)); }
};

} // namespace nsa::language
