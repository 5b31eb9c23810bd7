// The header of a template: the `//!` lines at its top, which hold all that the rest of the system needs to know about
// the template (docs/writing_a_template.md). The headers of tile programs and of hand-scheduled CUDA have the same
// grammar. A TemplateHeader owns its texts. Errors in a header name file, line and rule.
// Thread-safety: a TemplateHeader is immutable after parsing.
#pragma once

#include "runtime/base/expression.h"
#include "runtime/base/manifest.h"
#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

enum class TemplateKind {
  kTile,          // MLIR text; its function's arguments are the kernel's
  kHandScheduled, // CUDA text; declares its arguments and dynamic shared memory with `param` and `shared`
};

// The name of a value that comes from the target, not from the template or the problem (Target.h computes the value).
struct DriverValue {
  std::string_view name;
  bool isNumber;
};
std::span<const DriverValue> driverValues();

struct TemplateHeader {
  // A `fixed` line of a template: a value that the problem gives.
  struct Fixed {
    std::string name;
    std::vector<Operator>
        operators; // the operators whose problems have the value; empty: all. For other operators it is 0

    bool isOf(Operator op) const;
    bool operator==(const Fixed &) const = default;
  };
  struct Choice {
    std::string name;
    std::vector<int64_t> values; // as written: the order has no meaning
  };
  // A `let` or a `require` line of a template. The `let` and `require` lines act in the order of the file, so an
  // earlier require may guard a later let.
  struct Step {
    bool isRequire = false;
    std::string name; // the name that a `let` defines
    Expression expression;
    int line = 0;
  };
  struct Line {
    Expression expression;
    int number = 0; // 0: the template does not have the line
  };
  // The sizes of the tensor map for `params[param]`: the columns, heads and rows of a box.
  struct MapSizes {
    size_t param = 0;
    Line columns, heads, rows;
  };

  std::string file; // the name in errors, for example "tile/attention.mlir"
  TemplateKind kind = TemplateKind::kTile;
  std::string name;
  std::vector<Operator> operators;
  std::vector<std::string> targets; // "cpu", "gpu" or architectures; empty: any. Catalog::read checks the words
  int targetsLine = 0;
  std::vector<Fixed> fixed;
  std::vector<Choice> choices;
  std::vector<Step> steps;
  Line cost, threads, shared;
  Line grid[3];
  std::vector<ManifestParam> params; // a dtype spelled "dtype" is the problem's
  std::vector<MapSizes> maps;        // in the order of their parameters

  static Result<TemplateHeader> parse(std::string_view text, std::string file, TemplateKind kind);

  bool serves(Operator op) const;
};

// Makes the error for one line of a template: kCompileFailed with file, line and rule.
Status templateError(const std::string &file, int line, std::string rule, std::string hint = "");
// Turns the error of an expression (syntax, overflow, unknown name) into an error of the template's line.
Status templateError(const std::string &file, int line, const Status &cause);

} // namespace nsa
