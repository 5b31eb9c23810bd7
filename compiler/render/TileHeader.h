// The header of a tile program: the declarations of its kernel, without the body. A library has none, because what is
// tuned and launched is a kernel.
// Thread-safety: pure functions.
#pragma once

#include "compiler/language/syntax/Diagnostics.h"
#include "compiler/language/syntax/Syntax.h"
#include "compiler/render/TemplateHeader.h"

namespace nsa {

// Whether a kernel serves operators, whose calls say the sizes of its grid, or is a program of one's own, whose grid is
// made of its own scalars.
enum class TileHeaderOf { kTemplate, kProgram };

// `kernel` is the tree of a file that the parser read without errors.
Result<TemplateHeader> readTileHeader(const language::SyntaxTree &kernel, TileHeaderOf what = TileHeaderOf::kTemplate);
// The part of the header that says which configurations a kernel has. The kernel need not serve an operator.
Result<TemplateHeader> readTileChoices(const language::SyntaxTree &kernel);

// The errors of a compilation as one error of a template. Its place is that of the first error.
Status templateError(const language::Diagnostics &diagnostics);
// The errors of a program of one's own, as `nsa check` prints them.
Status programError(const language::Diagnostics &diagnostics, const std::string &file,
                    const std::map<std::string, std::string> &values = {});

} // namespace nsa
