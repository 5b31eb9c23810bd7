// The header of a template: its declarations. The header of a template tells the compiler which problems the template
// serves, which choices it has and how its kernels are launched (docs/writing_a_template.md). Tile programs declare in
// the tile language (TileHeader.h), and hand-scheduled CUDA in `//!` lines with the same words. A TemplateHeader owns
// its texts. The message for an error in a header names the file, the line and the rule. Thread-safety: a
// TemplateHeader is immutable after it was read.
#pragma once

#include "compiler/render/Values.h"
#include "runtime/base/expression.h"
#include "runtime/base/manifest.h"
#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

enum class TemplateKind {
  kTile,          // a program in the tile language
  kHandScheduled, // CUDA text; declares its arguments and dynamic shared memory with `param` and `shared`
};

// The name of a value that a template can use and that Target::values computes (Target.h).
struct DriverValue {
  std::string_view name;
  bool isNumber;
};
std::span<const DriverValue> driverValues();

// A line of a template, or of a header that a template includes.
struct TemplatePlace {
  std::string file; // the name in errors, for example "tile/attention.tile"
  int line = 0;     // 0: the template does not have the line
};

// Whether a value may have this name.
bool isTemplateName(std::string_view text);

// Finds a template file by its path below templates/, for example "header/causal_attention.inc". Returns nullptr if
// there is no such file.
using FindTemplateText = std::function<const std::string *(std::string_view path)>;

struct TemplateHeader {
  struct Line {
    Expression expression;
    TemplatePlace place;

    bool isPresent() const { return place.line != 0; }
    // An error names the place.
    Result<int64_t> evaluate(const Values &values) const;
  };
  // A value that the problem provides, of `fixed`.
  struct Fixed {
    std::string name;
    // Problems have the value if this is not 0; without a line they all do. For other problems the value is 0.
    Line condition;

    Result<bool> isNeeded(const Values &values) const;
  };
  struct Choice {
    std::string name;
    std::vector<int64_t> values; // as written: the order has no meaning
  };
  // A `const` or a `require` of a template. They are evaluated in the order of the file, so that a `require` can
  // exclude values for which a later `const` would fail.
  struct Step : Line {
    bool isRequire = false;
    std::string name; // that a `const` defines
  };
  // The box that the tensor map for `params[param]` copies: its number of columns, heads and rows.
  struct MapSizes {
    size_t param = 0;
    Line columns, heads, rows;
  };

  std::string file; // the name in errors, for example "tile/attention.tile"
  TemplateKind kind = TemplateKind::kTile;
  std::string name;
  std::vector<Operator> operators;
  std::vector<std::string> targets; // "cpu", "gpu" or architectures; empty: any. Catalog::read checks the words
  TemplatePlace targetsPlace;
  std::vector<std::string> includes; // the paths of the included headers, in the order of their `include` lines
  std::vector<Fixed> fixed;
  std::vector<Choice> choices;
  std::vector<Step> steps;
  Line cost, threads, shared;
  Line blocks; // that a multiprocessor shall hold at once; without a line, ptxas decides
  Line grid[3];
  std::vector<ManifestParam> params; // a dtype spelled "dtype" is the problem's
  std::vector<MapSizes> maps;        // in the order of their parameters
  // For each of `params`, the condition under which kernels have it. Without a line they always do.
  std::vector<Line> conditions;
  // For each of `params`, the rows of a page of a view. Without a line the view has no pages.
  std::vector<Line> pageRows;

  bool serves(Operator op) const;
};

// Reads the `//!` lines of a hand-scheduled template. `find` finds the headers that the template includes. Without
// `find` there are none.
Result<TemplateHeader> readCudaHeader(std::string_view text, std::string file, const FindTemplateText &find = {});

// Returns the error for one line of a template: kCompileFailed with the file, the line and the rule.
Status templateError(const TemplatePlace &place, std::string rule, std::string hint = "");
// Converts an error of an expression (syntax, overflow, unknown name) to an error that names the template's line.
Status templateError(const TemplatePlace &place, const Status &cause);

} // namespace nsa
