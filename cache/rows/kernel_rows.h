// Reads and writes rows of the table `kernels`: compression, digests, and which fields of a row are trusted. All
// functions of kernel_rows.h with an int result return sqlite's own codes.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/database/sqlite.h"
#include "cache/rows/rows.h"
#include "runtime/base/digest.h"
#include "runtime/base/status.h"

#include <span>

namespace nsa {

// A limit for the stored size of a kernel's binary, far above the size of any kernel. Without a limit for the stored
// size, a damaged size field could cause a huge allocation.
inline constexpr int64_t kMaxBinaryBytes = int64_t{256} << 20;

// A row of the table `kernels` as it is stored in the file.
struct KernelRow {
  std::string content, templateName, op, target, config, manifest;
  int64_t binaryBytes = 0;
  std::vector<std::byte> binary; // one zstd frame
  Digest::Bytes digest{};

  // Makes the row of a kernel. The error of KernelRow::make names the field that cannot be stored.
  static Result<KernelRow> make(const StoredKernel &kernel);
  // Decompresses the binary of an undamaged row and compresses it again, with the given level of zstd.
  Status compressAgain(int level);
};

// Computes the digest over all fields of a row that a kernel launch relies on. The digest of a row includes the name,
// so that two rows cannot be exchanged.
Digest::Bytes digestOf(const StoredKernel &kernel);
// Returns the digest that is stored in a column. If the column's length is not the length of a digest, digestIn returns
// a digest of zeros, which does not match any kernel.
Digest::Bytes digestIn(std::span<const std::byte> column);

enum class RowState { kIntact, kMissing, kDamaged };

// Reads a kernel. If the compressed binary or the digest of a row is wrong, the result is kDamaged, and then `kernel`
// must not be used. If `digest` is given, it counts instead of the digest in the row.
int readKernel(sqlite::Connection &connection, const std::string &content, StoredKernel &kernel, RowState &state,
               const Digest::Bytes *digest = nullptr);
// Returns whether the row of the kernel exists and is undamaged. A choice whose kernel is missing or damaged cannot be
// used.
int checkKernel(sqlite::Connection &connection, const std::string &content, bool &intact);
// Reads a kernel for callers that copy rows to another file: it checks what readKernel checks, and also that the other
// columns agree with the manifest.
int readKernelRow(sqlite::Connection &connection, const std::string &content, KernelRow &row, RowState &state);
// Writes the row of a kernel, even if a kernel with the same content is stored already, because the stored row may be
// damaged.
int writeKernelRow(sqlite::Connection &connection, const KernelRow &row);
// Lists all kernels in ascending order of their content key.
int listKernelRows(sqlite::Connection &connection, std::vector<KernelSummary> &kernels);

} // namespace nsa
