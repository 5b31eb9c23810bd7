// The one layout of a text of the tile language, as `nsa fmt` writes it.
// - Lines have at most 120 columns where the text can be broken; what goes on is indented by four blanks more.
// - Blocks are indented by two blanks. A block that the writer has put in one line stays in it while it fits.
// - What declarations of tuning and of the interface say begins in column 9.
// - The signs `=` of neighbouring `let` lines stand below each other, and so do those of neighbouring assignments. A
// target
//   of more than 16 columns takes no part and ends such a run.
// - Comments and single empty lines stay; a comment inside of a statement goes in front of it.
// Nothing is sorted: the order of declarations has a meaning. The layout of a layout is the same text.
// Thread-safety: format is a pure function of the file, besides what it reports.
#pragma once

#include "compiler/language/syntax/Diagnostics.h"

#include <optional>
#include <string>

namespace nsa::language {

inline constexpr size_t kLineWidth = 120;

// Nothing, where the text has mistakes, which are reported.
std::optional<std::string> format(const SourceFile &file, Diagnostics &diagnostics);

} // namespace nsa::language
