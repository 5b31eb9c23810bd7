#include "tests/harness/tile/interpreted.h"

#include "runtime/program/parsed_program.h"

#include <stdexcept>

namespace nsa::test::tile {

TileFindings interpret(const std::string &text, TileCall &call, const std::map<std::string, std::string> &libraries) {
  const Result<std::shared_ptr<ParsedProgram>> program =
      ParsedProgram::parse("program.tile", text, [&](const std::string &name) -> std::optional<std::string> {
        const auto found = libraries.find(name);
        return found == libraries.end() ? std::nullopt : std::optional(found->second);
      });
  Result<TileFindings> findings = program ? interpreter::interpret((*program)->trees(), call) : program.status();
  if (!findings)
    throw std::runtime_error(findings.status().error().message);
  return std::move(*findings);
}

} // namespace nsa::test::tile
