// The manifest of a compiled kernel has everything that the runtime must know to launch the kernel. A manifest is a
// text of lines, which the runtime library and the compiler library can read and write. `nsa cache show` prints
// manifests. A manifest is stored with the binary of its kernel. The ABI version of a manifest must match the ABI
// version of the runtime.
//
//   manifest 1
//   entry attention                    symbol (GPU) or byte offset into the image (CPU: "+64")
//   template attention
//   operator window
//   target sm_90a
//   fixed dtype=bf16 group=8 ...       the compiled-in problem values, names ascending
//   config key_tile=64 query_tile=64   the tuned choices, names ascending
//   revision <hex>                     digest of the template and the device headers it uses
//   param map q_map q bf16 128 16 4    a tensor map of the view q: columns, and heads and rows of a box
//   param view q bf16 3                one kernel argument per line, in order
//   param view k bf16 3 64             a view of pages of 64 rows
//   param gradient d_k bf16 3          a view of bf16 or of fp32, to which a launch may add
//   param i32 window
//   grid ceildiv(max_seqlen_q * 8, 64) ; kv_heads ; batch
//   threads 128
//   shared 65536                       dynamic shared memory, bytes (GPU)
//   scratch 81920                      bytes per worker thread (CPU)
//   evidence registers=168 spill_bytes=0 nvrtc=13.0
//
// Thread-safety: values.
#pragma once

#include "runtime/base/expression.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace nsa {

inline constexpr int kManifestVersion = 1;

// A kernel's arguments live in one block of 8-byte slots (GPU: one by-value struct; CPU: a pointer to it), in the order
// of the manifest. A scalar takes one slot, low bytes first. A view of rank r takes r + 2 slots: data pointer, r
// strides in elements, flags. A view of pages of rank r takes r + 4 slots: the r + 2 slots of a view, then its block
// table (int32) and the signed distance of the block table's rows in elements. In a view of pages, the first stride is
// the distance between pages, and the second stride is the distance between the rows of a page. Row t of sequence s
// lies in page table[s, t / rows], where `rows` is the number of rows of a page.
//
// A tensor map (GPUs from sm_90 on) is a CUtensorMap, 16 slots at a multiple of 64 bytes, so a manifest lists tensor
// maps before all other parameters. A tensor map describes a view [entry, time, head] whose rows are aligned to 16
// bytes. A tensor map has four dimensions: column, head, time and entry. A box lies within one entry, and has
// `boxHeads` heads, `boxRows` rows and 128 bytes of columns. In shared memory a box has the 128-byte swizzle
// (CU_TENSOR_MAP_SWIZZLE_128B). Where a view is absent or cannot have a tensor map (runtime/base/tensor_map.h), all 16
// slots of the view's tensor map are 0, and the kernel must read the view without a tensor map. A view whose entry
// stride is 0 has one entry.
struct ManifestParam {
  enum class Kind { kView, kI32, kI64, kF32, kMap };
  static constexpr int kMapSlots = 16;
  static constexpr int64_t kMapBoxBytes = 128; // of a row
  static constexpr int64_t kMostBoxRows = 256; // heads times rows, and of each
  static constexpr int64_t kMostColumns = 65536;
  Kind kind = Kind::kI32;
  std::string name;
  std::string dtype; // views and maps: bf16, fp16, fp32, int32
  int rank = 0;      // views: number of coordinates that address one row, 1 to 5
  int pageRows = 0;  // views: rows of a page; 0: no pages
  // Views: a launch may bind elements of `dtype` or of fp32, and may add to them. The flags of the view say so.
  bool isGradient = false;
  // Fields that only a tensor map has: the view that it describes, the number of elements in a row, and the size of the
  // box.
  std::string view{};
  int64_t columns = 0, boxHeads = 0, boxRows = 0;

  bool isPaged() const { return pageRows != 0; }
  int slots() const { return kind == Kind::kView ? rank + (isPaged() ? 4 : 2) : kind == Kind::kMap ? kMapSlots : 1; }
  bool operator==(const ManifestParam &) const = default;
};

// Bits of the flags in a view's last slot.
inline constexpr uint64_t kViewRowsAligned16 = 1; // base and every stride are multiples of 16 bytes
inline constexpr uint64_t kViewHoldsFloats = 2;   // the elements are fp32
inline constexpr uint64_t kViewAdds = 4;          // a store adds to what the memory holds; only of a gradient

struct Manifest {
  std::string entry;
  std::string templateName;
  std::string op;
  std::string target;
  std::map<std::string, std::string> fixed;
  std::map<std::string, std::string> config;
  std::string revision;
  std::vector<ManifestParam> params;
  Expression grid[3];
  int32_t threads = 1;
  int64_t sharedBytes = 0;
  int64_t scratchBytes = 0;
  std::map<std::string, std::string> evidence;

  int slotCount() const;
  std::string serialize() const;
  // `parse` fails on an unknown or repeated line, on a missing required line, and on another manifest version.
  static Result<Manifest> parse(std::string_view text);
};
// A decision and the kernel that it loads share a manifest, because a copy costs as much as a lookup in memory.
using SharedManifest = std::shared_ptr<const Manifest>;

// A map from names to values is always written as the text "a=1 b=2", with the names in ascending order. The names and
// values must not be empty and must not contain white space, and the names must not contain '='.
std::string formatValues(const std::map<std::string, std::string> &values);
Result<std::map<std::string, std::string>> parseValues(std::string_view text);

} // namespace nsa
