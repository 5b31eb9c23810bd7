#include "compiler/cuda/CudaNames.h"

#include "compiler/dialect/TileProgram.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace nsa::cuda {

// Names that emitted code uses itself: types, constants and functions of the device library, and the keywords of C++.
// MLIR accepts any of them as a name of a value.
static constexpr llvm::StringLiteral kReserved =
    "alignas alignof and and_eq args Arguments asm auto bf16 bitand bitor blockIdx bool break case catch char "
    "char16_t char32_t char8_t class co_await co_return co_yield ColumnVector commit_copies compl concept const "
    "const_cast consteval constexpr constinit continue decltype default delete do dot dot_annihilating dot_keeping "
    "dot_transposed dot_transposed_annihilating dot_transposed_keeping double dynamic_cast else enum erff "
    "evenly_spaced exp2_approx explicit export extern f16 fabsf false float fmaf for Fragment friend goto if "
    "infinity inline int int32 int64 kThreads kWarps kWarpSize load_columns load_fragment load_operand load_rows "
    "load_scalar load_tile log2_approx long map max max_number max_or_nan min min_number min_or_nan mutable "
    "namespace new next_stage noexcept not not_a_number not_eq nsa nullptr operator or or_eq PagedView "
    "previous_stage private protected public read_partials_add read_partials_max reduce_add reduce_last reduce_max "
    "reduce_rows_add reduce_rows_max register reinterpret_cast report requires return Ring rows_of RowVector rsqrtf "
    "shared SharedTile shift_columns short signed sizeof splat sqrtf static static_assert static_cast store_columns "
    "store_rows store_tile StripedColumns StripedTile struct sum_operand switch template this thread_local throw to "
    "to_float top_clear top_insert top_next TopLists transposed true try typedef typeid typename uint32 uint64 "
    "UniformRows union unsigned using View virtual void volatile wait_copies wchar_t while write_partials_add "
    "write_partials_max write_tile xor xor_eq";

CudaNames::CudaNames() {
  scopes.emplace_back();
  for (llvm::StringRef word : llvm::split(kReserved, ' '))
    scopes.back().insert(word);
}

bool CudaNames::isTaken(llvm::StringRef name) const {
  return llvm::any_of(scopes, [&](const llvm::StringSet<> &scope) { return scope.contains(name); });
}

std::string CudaNames::declare(llvm::StringRef wanted) {
  std::string name = wanted.str();
  // Names in MLIR may contain `$`, `.` and `-`.
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
