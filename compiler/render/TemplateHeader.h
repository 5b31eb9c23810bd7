// The `//!` lines at the top of a template: everything that the rest of the system needs to know about it
// (docs/writing_a_template.md). Both kinds of template, tile programs and hand-scheduled CUDA, share the grammar.
// A header owns its texts. Errors name file, line and rule.
// Thread-safety: immutable after parsing.
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

// A value that the target, not the template or the problem, gives (Target.h computes them).
struct DriverValue {
  std::string_view name;
  bool isNumber;
};
std::span<const DriverValue> driverValues();

struct TemplateHeader {
  // A value of the problem.
  struct Fixed {
    std::string name;
    std::vector<Operator> operators; // whose problems have it, empty: all; in the others 0 stands for it

    bool isOf(Operator op) const;
    bool operator==(const Fixed &) const = default;
  };
  struct Choice {
    std::string name;
    std::vector<int64_t> values; // as written: the order has no meaning
  };
  // `let` and `require` lines act in the order of the file, so a let may be guarded by an earlier require.
  struct Step {
    bool isRequire = false;
    std::string name; // of a let
    Expression expression;
    int line = 0;
  };
  struct Line {
    Expression expression;
    int number = 0; // 0: the template does not have the line
  };
  // Of the tensor map `params[param]`: its columns, and the heads and rows of a box.
  struct MapSizes {
    size_t param = 0;
    Line columns, heads, rows;
  };

  std::string file; // as errors name it, e.g. "tile/attention.mlir"
  TemplateKind kind = TemplateKind::kTile;
  std::string name;
  std::vector<Operator> operators;
  std::vector<std::string> targets; // "cpu", "gpu" or architectures, not checked here; empty: any
  int targetsLine = 0;
  std::vector<Fixed> fixed;
  std::vector<Choice> choices;
  std::vector<Step> steps;
  Line cost, threads, shared;
  Line grid[3];
  std::vector<ManifestParam> params; // the dtype "dtype" stands for the problem's
  std::vector<MapSizes> maps;        // in the order of their parameters

  static Result<TemplateHeader> parse(std::string_view text, std::string file, TemplateKind kind);

  bool serves(Operator op) const;
};

// The error of one line of a template.
Status templateError(const std::string &file, int line, std::string rule, std::string hint = "");
// An expression's error (syntax, overflow, unknown name) told as one of its line.
Status templateError(const std::string &file, int line, const Status &cause);

} // namespace nsa
