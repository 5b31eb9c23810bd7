// What a kernel and the libraries that it imports declare, with the constants computed for one problem, target and
// candidate. A library's declarations stand behind those of the file that imports it.
// Ownership: the trees outlive the declarations, and the axes, tensors and records belong to the Program.
// Thread-safety: none.
#pragma once

#include "compiler/language/syntax/Imports.h"
#include "compiler/language/types/Program.h"

#include <unordered_map>
#include <unordered_set>

namespace nsa::language {

// Whether the language has a constant or an element type of this name, which no declaration may take.
bool isBuiltInWord(std::string_view name);
bool isBuiltInFunction(std::string_view name);
std::span<const std::string_view> builtInFunctions();
std::span<const std::string_view> builtInNumbers();
// What was meant by a name that is no element type: the nearest one, or all that there are.
std::string hintOfElement(std::string_view name);

class Declarations {
public:
  Declarations(const GivenValues &given, Program &program, Diagnostics &diagnostics)
      : given(given), program(program), diagnostics(diagnostics) {}

  // Reads a kernel and what it imports. False after an error.
  bool read(const SyntaxTree &kernel, const LibraryResolver &libraries);

  std::optional<Constant> constant(std::string_view name) const;
  // The value of an expression of constants. Reports what is none.
  std::optional<int64_t> integer(const Expr *expr) const;
  const Axis *axis(std::string_view name) const { return find(axes, name); }
  Tensor *tensor(std::string_view name) const { return find(tensors, name); }
  ScalarArgument *scalar(std::string_view name) const { return find(scalars, name); }
  const Record *record(std::string_view name) const { return find(records, name); }
  const FunctionItem *function(std::string_view name) const { return find(functions, name); }
  // Where a name is declared; nullptr: it is not.
  const SourceRange *placeOf(std::string_view name) const;
  // The element type of this name, which may be a fixed value that is a dtype.
  std::optional<Element> element(std::string_view name) const;
  // All names that are declared.
  std::vector<std::string_view> names() const;
  // All names of records and functions, which are called.
  std::vector<std::string_view> callees() const;

  const KernelItem *kernel = nullptr;
  const GridItem *grid = nullptr;
  std::vector<const Statement *> body;

private:
  template <typename T> static T *find(const std::unordered_map<std::string_view, T *> &map, std::string_view name) {
    const auto found = map.find(name);
    return found == map.end() ? nullptr : found->second;
  }

  void readItem(const Item &item);
  void readFixed(const FixedItem &item);
  void readAxis(const AxisItem::Axis &declared);
  void readTensor(const TensorItem::Declaration &declared);
  bool checkRows(const Tensor &tensor, const TensorItem::Declaration &declared);
  void readFunction(const FunctionItem &item);
  void readRecord(const RecordItem &item);
  void readConstants(BindingList bindings);
  void bind(const Name &name, std::optional<Constant> value);
  bool declare(const Name &name);
  void padAxes();

  const GivenValues &given;
  Program &program;
  Diagnostics &diagnostics;
  std::unordered_map<std::string_view, SourceRange> places;
  std::unordered_map<std::string_view, std::optional<Constant>> constants; // nothing: not given, or an error before
  std::unordered_map<std::string_view, Axis *> axes;
  std::unordered_map<std::string_view, Tensor *> tensors;
  std::unordered_map<std::string_view, ScalarArgument *> scalars;
  std::unordered_map<std::string_view, const Record *> records;
  std::unordered_map<std::string_view, const FunctionItem *> functions;
  std::unordered_set<std::string_view> fixed, wordsOfKernel; // values of the problem, operators
};

} // namespace nsa::language
