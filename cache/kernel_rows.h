// The rows of the table `kernels`: compression, digests and what may be believed of a row.
// Thread-safety: none, as the connection.
#pragma once

#include "cache/rows.h"
#include "cache/sqlite.h"
#include "runtime/base/digest.h"
#include "runtime/base/status.h"

#include <span>

namespace nsa {

// No kernel is near this; a damaged size must not become an allocation.
inline constexpr int64_t kMaxBinaryBytes = int64_t{256} << 20;

// A row as it stands in the file.
struct KernelRow {
  std::string content, templateName, op, target, config, manifest;
  int64_t binaryBytes = 0;
  std::vector<std::byte> binary; // one zstd frame
  Digest::Bytes digest{};

  // The row of a kernel; an error names what cannot be stored.
  static Result<KernelRow> make(const StoredKernel &kernel);
  // Packs the binary of an intact row anew; the level is one of zstd's.
  Status compressAgain(int level);
};

// Over everything that a launch trusts, the name included, so that rows cannot trade places.
Digest::Bytes digestOf(const StoredKernel &kernel);
// What a column holds; of another length zeros, which no kernel has.
Digest::Bytes digestIn(std::span<const std::byte> column);

enum class RowState { kIntact, kMissing, kDamaged };

// All return sqlite's own codes.
// A row whose frame or digest does not hold is damaged, and what was read of it not to be used.
int readKernel(sqlite::Connection &connection, const std::string &content, StoredKernel &kernel, RowState &state);
// Whether it is there and intact: a choice whose kernel is not serves nobody.
int checkKernel(sqlite::Connection &connection, const std::string &content, bool &intact);
// As readKernel where the digest is known, so that the row's own counts for nothing.
int readKernel(sqlite::Connection &connection, const std::string &content, const Digest::Bytes &digest,
               StoredKernel &kernel, RowState &state);
// As the first, and whether the listed columns repeat the manifest; for who copies rows.
int readKernelRow(sqlite::Connection &connection, const std::string &content, KernelRow &row, RowState &state);
// The same content twice is the same kernel, but the row that stands may be damaged: it is written again.
int writeKernelRow(sqlite::Connection &connection, const KernelRow &row);
// Ascending by content.
int listKernelRows(sqlite::Connection &connection, std::vector<KernelSummary> &kernels);

} // namespace nsa
