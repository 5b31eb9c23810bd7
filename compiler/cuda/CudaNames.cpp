#include "compiler/cuda/CudaNames.h"

#include "compiler/dialect/TileProgram.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace nsa::cuda {

// What emitted code says itself, and the words of C++ that MLIR would accept as names.
static constexpr llvm::StringLiteral kReserved[] = {
    "alignas",   "and",      "args",   "asm",      "auto",    "bf16",    "bool",      "break",  "case",     "char",
    "class",     "concept",  "const",  "continue", "default", "delete",  "do",        "dot",    "double",   "else",
    "enum",      "explicit", "export", "extern",   "f16",     "false",   "float",     "for",    "goto",     "if",
    "infinity",  "inline",   "int",    "int32",    "int64",   "long",    "map",       "max",    "min",      "mutable",
    "namespace", "new",      "not",    "operator", "or",      "private", "protected", "public", "register", "report",
    "requires",  "return",   "shared", "short",    "signed",  "sizeof",  "splat",     "static", "struct",   "switch",
    "template",  "this",     "throw",  "true",     "try",     "typedef", "typename",  "uint32", "union",    "unsigned",
    "using",     "virtual",  "void",   "volatile", "while",   "xor"};

CudaNames::CudaNames() {
  scopes.emplace_back();
  for (llvm::StringRef word : kReserved)
    scopes.back().insert(word);
}

bool CudaNames::isTaken(llvm::StringRef name) const {
  return llvm::any_of(scopes, [&](const llvm::StringSet<> &scope) { return scope.contains(name); });
}

std::string CudaNames::declare(llvm::StringRef wanted) {
  std::string name = wanted.str();
  // MLIR's names may hold `$`, `.` and `-`.
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  const std::string base = name;
  for (int number = 2; isTaken(name); ++number)
    name = base + "_" + std::to_string(number);
  scopes.back().insert(name);
  return name;
}

std::string CudaNames::declare(mlir::Value value, llvm::StringRef otherwise) {
  std::string name = tile::sourceName(value);
  return declare(name.empty() ? otherwise : llvm::StringRef(name));
}

} // namespace nsa::cuda
