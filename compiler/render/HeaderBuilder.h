// What the two ways to write a template's declarations have in common: the `//!` lines of hand-scheduled CUDA
// (CudaHeader.cpp) and the declarations of the tile language (TileHeader.cpp) fill one TemplateHeader by one set of
// rules. Thread-safety: none, one object reads one template.
#pragma once

#include "compiler/render/TemplateHeader.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace nsa {

class HeaderBuilder {
protected:
  HeaderBuilder(std::string file, TemplateKind kind);

  // The error for `place`.
  Status fail(std::string rule, std::string hint = "") const;
  static std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

  // Reserves a name for a value. A name has one meaning in a template.
  Status declare(std::string_view name);
  // Every name must be known where it is used. So a misspelt name is found without a rendering. Some names are known at
  // launch only.
  Status parseExpression(std::string_view text, bool atLaunch, Expression &result) const;
  Status parseLine(std::string_view text, TemplateHeader::Line &result) const;

  Status addOperator(std::string_view name);
  // `condition` is the text behind `when`; empty: always.
  Status addFixed(std::string_view name, std::string_view condition);
  Status addConstant(std::string_view name, std::string_view expression);
  Status addRequire(std::string_view expression);
  Status addChoice(std::string_view name);
  Status addChoiceValue(int64_t value); // to the choice that was added last

  TemplateHeader header;
  TemplatePlace place; // what is read
  // The scalars of a program of one's own, which its grid is made of; nullopt: the grid is of an operator's call.
  std::optional<std::set<std::string, std::less<>>> scalars;

private:
  Status checkName(const std::string &name, bool atLaunch) const;

  std::set<std::string, std::less<>> declared;
};

} // namespace nsa
