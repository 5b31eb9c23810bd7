// What the interpreter of the tile language knows while it runs one launch: declarations, names in scope, and the
// program of the grid. interpreter.h says what it serves for.
// Ownership: the trees and the call outlive it. Thread-safety: none.
#pragma once

#include "compiler/language/syntax/Diagnostics.h"
#include "compiler/language/syntax/Syntax.h"
#include "runtime/program/interpreter/interpreter.h"
#include "runtime/program/interpreter/tile_value.h"

#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace nsa::interpreter {

// A declared tensor of the launch.
struct Memory {
  std::string name;
  Element element = Element::kF32;
  std::vector<std::string> labels; // of the coordinates, and of the column if there is one
  size_t coordinates = 0;
  bool hasColumns = false;
  const Axis *columnAxis = nullptr; // of whole rows
  const language::RecordItem *record = nullptr;
  TileTensor *data = nullptr;    // nullptr: absent
  std::vector<int64_t> stores;   // of each element, the number of the last store to it; 0: none
  std::vector<int64_t> programs; // of each element, the program that stored to it

  // "t[1, 2; 3]" of the first dimensions
  std::string place(std::span<const int64_t> coordinates) const;
};

class Evaluator {
public:
  Evaluator(std::vector<const language::SyntaxTree *> trees, TileCall &call);
  TileFindings run();

private:
  using Scope = std::map<std::string, TileValue, std::less<>>;
  struct Frame { // of the kernel, or of a function that is called
    std::vector<Scope> scopes;
    std::map<std::string, const Axis *, std::less<>> axes;
  };

  [[noreturn]] static void fail(const language::SourceRange &range, const std::string &text);
  // A fault at a place of the text. Returns its message if the place is new, so that it needs a text and notes.
  language::Diagnostic *fault(Fault::Kind kind, const language::SourceRange &range);
  // "tile = 1, head = 0" of the program with a number.
  std::string programText(int64_t number) const;

  // declarations
  void declare();
  void declare(const language::Item &item);
  void choose();
  void declareTensor(const language::TensorItem::Declaration &declared);
  bool isAdmitted();
  int64_t constant(const language::Expr &expr);
  Element element(const language::Name &name);
  const Axis *axis(const language::Name &name);
  const language::RecordItem *record(std::string_view name) const;

  // expressions
  TileValue expr(const language::Expr &expr);
  TileValue name(const language::NameExpr &expr);
  TileValue binary(const language::BinaryExpr &expr);
  TileValue below(const language::BelowExpr &expr);
  TileValue conditional(const language::ConditionalExpr &expr);
  TileValue castTo(const TileValue &value, Element element, const language::SourceRange &range);
  TileValue field(const language::FieldExpr &expr);
  TileValue picked(const TileValue &base, const Axis *along, const TileValue &index,
                   const language::SourceRange &range);
  TileValue elementwise(Operation op, std::span<const TileValue> operands, const language::SourceRange &range);
  // What exists of two integers that are divided is divided by no 0.
  void checkDivisor(std::span<const TileValue *const> operands, const language::SourceRange &range);
  TileValue select(const TileValue &condition, const TileValue &ifTrue, const TileValue &ifFalse,
                   const language::SourceRange &range);
  static TileValue converted(const TileValue &value, Element element);
  // The one number of the expression. It is known exactly, or the interpreter cannot go on.
  int64_t integer(const language::Expr &expr);
  int64_t integer(const TileValue &value, const language::SourceRange &range);
  bool truth(const language::Expr &expr);

  // calls
  TileValue call(const language::CallExpr &expr);
  TileValue inlined(const language::FunctionItem &function, const language::CallExpr &expr);
  void bindAxes(const language::FunctionItem &function, const language::CallExpr &expr,
                std::span<const TileValue> arguments, Frame &frame);
  TileValue reduce(const language::CallExpr &expr);
  TileValue reduced(const TileValue &value, const Axis *along, const language::CallExpr &expr);
  TileValue dot(const language::CallExpr &expr);
  TileValue mask(const language::CallExpr &expr);
  static TileValue masked(const TileValue &value, const TileValue &predicate, double fill, const AxisSet &over);
  // What the mask leaves out lies where its `when` holds.
  void checkWhen(const TileValue &value, const TileValue &predicate, const AxisSet &over,
                 const language::CallExpr &expr);
  TileValue shift(const language::CallExpr &expr);
  TileValue stack(const language::CallExpr &expr);
  TileValue end(const language::CallExpr &expr, bool isHigh);
  static TileValue present(const TileValue &value);

  // memory
  struct Address {
    Memory *memory = nullptr;
    std::vector<TileValue> coordinates; // and behind them the column, if there is one
    TileValue condition;
    AxisSet axes;
  };
  Address address(const language::Place &place);
  static void endWithRow(TileValue &column, const Memory &memory);
  // The number of the element where the walk is; -1: the tensor has no such element. `walk` has the coordinates first.
  int64_t offset(const Address &address, const Walk &walk, const language::SourceRange &range, const char *what);
  static std::vector<int64_t> placeOf(const Address &address, const Walk &walk);
  static bool isOpen(const Address &address, const Walk &walk);
  TileValue load(const language::LoadExpr &expr);
  TileValue loadAt(const Address &address, const language::SourceRange &range);
  TileValue loadRecord(const Address &address, const language::SourceRange &range);
  void store(const language::StoreStatement &statement);
  void storeAt(const Address &address, const TileValue &value, const language::StoreStatement &statement);
  // Stores to the element where the walk is.
  void write(const Address &address, const Walk &walk, int64_t offset, Cell cell,
             const language::StoreStatement &statement);

  // statements
  void runProgram();
  // False: the program has ended.
  bool statements(std::span<const language::Statement *const> list);
  bool block(const language::Block &block);
  bool statement(const language::Statement &statement);
  void let(const language::LetStatement &statement);
  void var(const language::VarStatement &statement);
  void assign(const language::Name &target, TileValue value);
  bool loop(const language::ForStatement &statement);
  bool loop(const language::ForAxisStatement &statement);
  void report(const language::ReportStatement &statement);
  void bind(const language::Name &name, TileValue value);
  TileValue *find(std::string_view name);

  std::vector<const language::SyntaxTree *> trees;
  TileCall &launch;
  TileFindings findings;
  struct FaultPlace {
    Fault::Kind kind;
    language::Diagnostic message;
    int64_t count;
  };
  std::deque<FaultPlace> faults;

  std::map<std::string, TileValue, std::less<>> constants, scalars, grid;
  std::map<std::string, const language::Expr *, std::less<>> constantExprs;
  std::map<std::string, const language::FunctionItem *, std::less<>> functions;
  std::map<std::string, const language::RecordItem *, std::less<>> records;
  std::deque<Axis> axes;
  std::deque<Memory> memories;
  std::vector<const language::ChoiceItem::Choice *> choices;
  std::vector<const language::Expr *> requirements;
  const language::GridItem *gridItem = nullptr;
  std::vector<std::pair<std::string, int64_t>> gridParts; // sizes; the slowest part of each dimension first
  std::vector<const language::Statement *> body;

  std::vector<Frame> frames;
  int unchosen = 0;        // greater than 0: what is computed here is not chosen, and serves for its axes alone
  int chosenByElement = 0; // greater than 0: a condition of elements says which elements of what is computed here count
  int64_t program = 0, stores = 0;
};

} // namespace nsa::interpreter
