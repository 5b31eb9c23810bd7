// A tile program in a test: its text, what is known of the problem, and what comes of it.
#pragma once

#include "compiler/language/types/Types.h"
#include "tests/unit/language/parsed.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace nsa::language {

class LanguageProgram {
public:
  // The kernel's text. Libraries that it imports are among `libraries`.
  explicit LanguageProgram(std::string text) : kernel(std::move(text)) {}

  void add(const std::string &name, std::string text) {
    libraries[name] = std::make_unique<Parsed>(std::move(text), name + ".tile");
  }
  void give(std::string name, std::string value) { given[std::move(name)] = std::move(value); }

  // The typed program; nullptr after an error.
  const Program *type() {
    if (kernel.diagnostics.hasErrors())
      return nullptr;
    program =
        typeProgram(*kernel.tree, [this](std::string_view name) { return library(name); }, given, kernel.diagnostics);
    return program.get();
  }
  std::string messages() const { return kernel.messages(); }

  GivenValues given = {{"dtype", "bf16"}, {"cpu", "0"}, {"gpu", "1"}, {"dot_step", "16"}, {"dtype_bytes", "2"}};

private:
  const SyntaxTree *library(std::string_view name) const {
    const auto found = libraries.find(name);
    return found == libraries.end() ? nullptr : found->second->tree.get();
  }

  Parsed kernel;
  std::map<std::string, std::unique_ptr<Parsed>, std::less<>> libraries;
  std::unique_ptr<Program> program;
};

} // namespace nsa::language
