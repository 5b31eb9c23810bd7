// Writes the declarations of a hand-scheduled template that its header already states: the values that are compiled in,
// and the kernel's arguments. A template places them with the holes `${facts}` and `${arguments}`.
// Thread-safety: pure functions.
#pragma once

#include "compiler/render/TemplateHeader.h"
#include "compiler/render/Values.h"

#include <span>
#include <string>

namespace nsa {

inline constexpr std::string_view kFactsHole = "facts", kArgumentsHole = "arguments";

// Returns `struct Facts` with the type Element and one constant for each number of the `fixed`, `const` and `choice`
// lines. The constant for `key_tile` is called kKeyTile. If the kernel reads the table of sequences,
// Facts also has the numbers of the table's fields (runtime/base/sequence_fields.h): kSequenceQBegin, ...
std::string declareFacts(const TemplateHeader &header, const Values &values);

// Returns `struct Arguments`, which has the layout that runtime/base/manifest.h gives to the parameters. The types of
// the parameters must be known, so none may be "dtype".
std::string declareArguments(std::span<const ManifestParam> params);

} // namespace nsa
