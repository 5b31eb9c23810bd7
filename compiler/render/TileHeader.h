// The header of a tile program: the declarations of its kernel, without the body. A library has none, because what is
// tuned and launched is a kernel.
// Thread-safety: pure functions.
#pragma once

#include "compiler/language/Diagnostics.h"
#include "compiler/language/Syntax.h"
#include "compiler/render/TemplateHeader.h"

namespace nsa {

// `kernel` is the tree of a file that the parser read without errors.
Result<TemplateHeader> readTileHeader(const language::SyntaxTree &kernel);
// The part of the header that says which configurations a kernel has. The kernel need not serve an operator.
Result<TemplateHeader> readTileChoices(const language::SyntaxTree &kernel);

// The errors of a compilation as one error of a template. Its place is that of the first error.
Status templateError(const language::Diagnostics &diagnostics);

} // namespace nsa
