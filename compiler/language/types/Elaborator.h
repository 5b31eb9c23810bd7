// The walk over the body of a kernel that makes the typed program: one function for each kind of statement and
// expression. Its parts are in Elaborate*.cpp.
// Thread-safety: none.
#pragma once

#include "compiler/language/types/Declarations.h"
#include "compiler/language/types/Edges.h"

#include <array>
#include <limits>
#include <unordered_map>

namespace nsa::language {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Elaborator {
public:
  Elaborator(Declarations &declarations, Program &program, Diagnostics &diagnostics)
      : declarations(declarations), program(program), diagnostics(&diagnostics), builder(program), ends(builder),
        edges(builder, ends) {}

  void run();

private:
  // What made a name of the body.
  enum class Origin : uint8_t { kLet, kVar, kLoop, kGrid, kParameter };
  // A name of the body.
  struct Binding {
    Typed value;
    SourceRange range;
    Origin origin = Origin::kLet;
    std::string_view name;

    bool isVariable() const { return origin == Origin::kVar; }
  };
  // Names from a brace to its counterpart, or those of a function, which sees no other scope.
  struct Scope {
    std::unordered_map<std::string_view, Binding *> names;
    std::unordered_map<std::string_view, const Axis *> axes;
    bool isFunction = false;
  };
  using Saved = std::vector<std::pair<Binding *, Typed>>;
  // Typing of a block, which may be discarded with its messages. What is known inside of it ends with it.
  class Attempt {
  public:
    Attempt(Elaborator &elaborator, bool keepsRemarks);
    Attempt(const Attempt &) = delete;
    Attempt &operator=(const Attempt &) = delete;
    ~Attempt();
    bool hasErrors() const { return diagnostics.hasErrors(); }
    void discard() { isDiscarded = true; }

  private:
    Elaborator &elaborator;
    Diagnostics diagnostics, *outer;
    bool keepsRemarks, isDiscarded = false;
    size_t knownPresences, places, picks, knownEdges;
  };

  // --- messages (Elaborator.cpp)
  Diagnostic &error(const SourceRange &range, std::string text);
  Typed fail(const SourceRange &range, std::string text) {
    error(range, std::move(text));
    return {};
  }
  Typed fail(const SourceRange &range, std::string text, std::string hint) {
    error(range, std::move(text)).hint(std::move(hint));
    return {};
  }
  // Whether more may be typed. A program that is too large is reported at its end.
  bool mayGoOn(const SourceRange &range);
  std::string describe(const Typed &typed) const;
  Typed unknownName(const SourceRange &range, std::string_view name);
  Typed unknownFunction(const Name &callee);

  // --- names (Elaborator.cpp)
  Binding *find(std::string_view name);
  Typed nameValue(const NameExpr &expr);
  const Axis *axis(const Name &name);
  AxisSet axisSet(NameList names, bool &isKnown);
  bool bind(const Name &name, const Typed &value, Origin origin);
  void nameValueOf(const Typed &value, std::string_view name);
  Typed tensorValue(Tensor *tensor);
  void declareGrid();

  // --- statements (ElaborateStatements.cpp, ElaborateControl.cpp)
  void statements(std::span<const Statement *const> list);
  void statement(const Statement &statement);
  void block(const Block &syntax);
  void let(const LetStatement &statement);
  void var(const VarStatement &statement);
  void refuseAssignment(const Name &target, const Binding *binding);
  void assign(const Name &target, const Typed &value, const SourceRange &range);
  void assignTarget(const Target &target, const Typed &value, const SourceRange &range);
  const Value *originOf(const Value *value, const Axis *axis);
  // The element type of a value; kNone: a number.
  static Element elementOf(const Typed &value) {
    return value.kind == Typed::Kind::kStack    ? elementOf(value.elements.front())
           : value.kind == Typed::Kind::kNumber ? Element::kNone
                                                : value.value->element;
  }
  void add(const AddStatement &statement);
  void store(const StoreStatement &statement);
  void report(const ReportStatement &statement);
  void insert(const CallExpr &call);
  void ifStatement(const IfStatement &statement);
  void forStatement(const ForStatement &statement);
  void forAxis(const ForAxisStatement &statement);
  void returnIf(const ReturnIfStatement &statement);
  bool loopSchedules(const ScheduleList &schedules, Loop &loop);
  void makeLoop(Loop &loop, const std::vector<Binding *> &assigned, const SourceRange &range,
                const std::function<void()> &body);
  void makeBranch(Value *condition, const std::vector<Binding *> &assigned, const SourceRange &range,
                  const std::function<void()> &then, const std::function<void()> &otherwise);
  // What a branch hands on, from what its sides yield.
  Value *resultOf(Value *statement, const Value *left, const Value *right, size_t number);
  // A value of the same type, with what is known of `from` outside of the block that it is made in.
  Value *derived(Op op, const Value *from, Body *body, int64_t number);
  std::vector<std::string_view> leafNames(const std::vector<Binding *> &assigned) const;
  std::vector<Value *> leavesOf(const std::vector<Binding *> &assigned) const;
  void setLeaves(const std::vector<Binding *> &assigned, std::span<Value *const> leaves);
  std::vector<Binding *> assignedIn(std::initializer_list<const Block *> blocks);
  void collectAssigned(std::span<const Statement *const> list, std::vector<Binding *> &result);
  Saved save(const std::vector<Binding *> &bindings) const;
  void restore(const Saved &saved);
  // What is typed, but not part of the program.
  void typedOnly(const std::function<void()> &body);

  // --- expressions (ElaborateExpressions.cpp)
  Typed expr(const Expr &expr);
  Typed typed(const Expr &expr);
  Typed unary(const UnaryExpr &expr);
  Typed binary(const BinaryExpr &expr);
  Typed logical(const BinaryExpr &expr);
  Typed in(const InExpr &expr);
  Typed below(const BelowExpr &expr);
  Value *bounded(Value *index, const Axis *axis, Value *bound, const SourceRange &range);
  Typed conditional(const ConditionalExpr &expr);
  // Whether a side of `?:` is to be computed only where it is chosen: it loads, multiplies tiles, reduces, or divides.
  bool isLazy(const Expr &expr);
  bool isAnyLazy(ExprList list);
  bool isNumber(const Expr &expr);
  Typed lazyConditional(const ConditionalExpr &expr, Value *condition);
  struct SideType {
    Element element = Element::kNone;
    AxisSet axes = 0;
    Form form = Form::kScalar;
  };
  std::optional<SideType> sideType(const Typed &left, const Typed &right) const;
  Typed cast(const CastExpr &expr);
  Typed castTo(const Typed &value, Element element, const SourceRange &range);
  Typed field(const FieldExpr &expr);
  Typed pick(const PickExpr &expr);
  Typed picked(const Typed &base, const Axis *axis, const Typed &index, const SourceRange &range);
  Value *pickedLoad(Value *load, const Axis *along, Value *place, const SourceRange &range);
  Value *isAt(Value *index, int64_t place, const SourceRange &range);

  // --- operations of elements (Elementwise.cpp)
  Typed elementwise(Op op, std::span<const Typed> operands, const SourceRange &range, const SourceRange &opRange);
  Typed elementwise(Op op, std::initializer_list<Typed> operands, const SourceRange &range,
                    const SourceRange &opRange) {
    return elementwise(op, std::span<const Typed>(operands.begin(), operands.size()), range, opRange);
  }
  Typed fold(Op op, std::span<const Typed> operands, const SourceRange &range);
  Typed expanded(Op op, std::span<const Typed> operands, const Axis *axis, const SourceRange &range,
                 const SourceRange &opRange);
  Typed select(const Typed &condition, const Typed &ifTrue, const Typed &ifFalse, const SourceRange &range,
               const SourceRange &opRange);
  // One of a stack's values, or of a formula along an outer axis.
  Typed component(const Typed &value, const Axis *axis, int64_t place);
  // The first outer axis along which the operands are stacks or formulas.
  const Axis *outerAxisOf(std::span<const Typed> operands) const;
  // A constant of this element type. A real number becomes an i32 as a kernel converts it, towards zero. Reports a
  // number that does not fit i32.
  Value *numberOf(const Constant &number, Element element, const SourceRange &range);
  // A value of this element type: numbers become constants, elements of memory f32.
  Value *converted(const Typed &value, Element element, const SourceRange &range);
  // The scalar of this type that the expression is. Reports what is none, and returns nullptr then.
  Value *scalar(const Expr &expr, Element element, std::string_view what, std::string_view hint = {});
  Value *scalarOf(const Typed &value, Element element, const SourceRange &range, std::string_view what,
                  std::string_view hint = {});
  // A tile or scalar for a place of these axes and this type.
  Value *fitted(const Typed &value, Element element, AxisSet axes, Form form, const SourceRange &range);

  // --- memory (ElaborateMemory.cpp)
  struct Address {
    Value *tensor = nullptr;
    std::vector<Typed> coordinates;
    Typed column, condition;
    bool isStore = false;
    SourceRange range;
  };
  Typed placeTensor(const Place &place);
  // What holds of every store (ElaborateStores.cpp).
  void checkStore(const Value &store, const StoreStatement &statement);
  void checkExistence(const Value &store, const StoreStatement &statement);
  void checkPrograms(const Value &store, const StoreStatement &statement);
  void checkDistinct(const Value &store, const StoreStatement &statement);
  void checkBound(const Value &store, const StoreStatement &statement);
  bool address(const Place &place, bool isStore, Address &result);
  Typed load(const LoadExpr &expr);
  Typed loadAt(const Address &address, int64_t staysInShared);
  Typed loadRecord(const Address &address);
  Access *access(const Address &address, AxisSet &axes, std::span<const Presence> &presence);
  // The tile of whose elements the places of a store are made.
  Value *placeOf(std::vector<Value *> tiles, const SourceRange &range);
  bool columnsOf(const Address &address, Access &access, std::span<const Presence> &presence);
  Value *dividedExactly(Value *value, int64_t divisor, const SourceRange &range);
  Value *firstOf(Value *index, const Axis *axis, const SourceRange &range);
  // The number of columns in a row of a tensor, which may be a chosen one.
  Value *columnCount(const Value *tensor, const SourceRange &range);
  Value *columnBoundOf(const Address &address, const Axis *axis, Value *first, std::span<const Presence> &presence);
  void storeValue(const Address &address, const Expr &valueExpr, const StoreStatement &statement);
  void storeRecord(const Address &address, const Typed &value, const StoreStatement &statement);
  static void addParts(Value &load);
  bool isPickedAtRunTime(std::string_view name) const;

  // --- calls (ElaborateCalls.cpp, ElaborateTiles.cpp)
  Typed call(const CallExpr &expr);
  Typed inlined(const FunctionItem &function, const CallExpr &expr);
  bool bindAxes(const FunctionItem &function, const CallExpr &expr, std::span<const Typed> arguments, Scope &scope);
  static AxisSet axesOfStack(const Typed &stack);
  Typed parameterValue(const FunctionItem &function, size_t number, const Typed &argument, const CallExpr &expr,
                       Scope &scope);
  Typed recordOf(const Record &record, const CallExpr &expr);
  Typed endOf(const CallExpr &expr, bool high);
  Typed present(const CallExpr &expr);
  Typed stack(const CallExpr &expr);
  Typed reduce(const CallExpr &expr);
  Typed shift(const CallExpr &expr);
  Value *rounded(Value *side);
  Typed dot(const CallExpr &expr, const Expr *accumulator);
  Typed mask(const CallExpr &expr);
  Typed masked(const Typed &typed, const Typed &typedPredicate, const Typed &fill, AxisSet over, Value *when,
               const CallExpr &expr);
  Typed reducedTile(const Typed &argument, const Axis *along, const CallExpr &expr);
  Typed top(const CallExpr &expr);
  // Whether a statement stands in no block of the kernel and in no function.
  bool isAtTopLevel() const { return scopes.size() == 2 && calls.empty(); }
  Typed next(const CallExpr &expr);
  Value *tile(const Expr &expr, std::string_view what);
  // The value with `neutral` for what does not exist along the axis.
  Value *filled(Value *value, const Axis *axis, double neutral, const SourceRange &range);
  bool overOne(const CallExpr &expr, const Axis *&axis);

  // Tensors that are known to be present here.
  bool isPresent(const Value *tensor) const;
  void knowPresent(Value *condition, bool holds);

  Declarations &declarations;
  Program &program;
  Diagnostics *diagnostics;
  uint32_t steps = 0;      // expressions and statements that were typed
  SourceRange firstBeyond; // where a program became too large
  ValueBuilder builder;
  Ends ends;
  Edges edges;
  std::deque<Binding> bindings;
  std::vector<Scope> scopes;
  std::vector<const CallExpr *> calls; // that are being inlined
  // The parts of the grid, and those that decide whether the current block is run.
  std::vector<std::string_view> gridParts;
  uint32_t conditionParts = 0;
  std::vector<const Value *> knownPresences; // conditions that hold, each about tensors that are present
  std::unordered_map<const Tensor *, Value *> tensorValues;
  std::unordered_map<const ScalarArgument *, Value *> argumentValues;
  const Expr *boundAtTopLevel = nullptr;       // what a let at the top level binds, while it is typed
  std::string_view pendingName;                // the name that a let gives to the expression that is typed
  std::span<const Statement *const> following; // statements behind the one that is typed, in its block
  struct KnownPlace {
    Value *index;
    int64_t place;
    Value *is;
  };
  std::vector<KnownPlace> places; // comparisons that isAt made
  // Which elements exist along an axis whose tiles are padded; empty: all do.
  std::span<const Presence> paddingOf(const Axis *axis);
  // What exists of rows that are padded.
  std::unordered_map<const Axis *, Value *> paddings, paddingBounds;
  struct KnownPick {
    const Typed *stack;
    Value *index;
    Typed picked;
  };
  // One edge serves all masks with the same predicate.
  struct KnownEdge {
    const Value *predicate;
    AxisSet over;
    Value *edge;
  };
  std::vector<KnownEdge> knownEdges;
  std::vector<KnownPick> picks; // of tensors, which are known to be present or not
};

} // namespace nsa::language
