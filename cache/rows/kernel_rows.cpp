#include "cache/rows/kernel_rows.h"

#include "runtime/base/manifest.h"

#include <algorithm>

#include <zstd.h>

namespace nsa {

namespace {

using sqlite::Connection;
using sqlite::Query;

// Kernels are a few hundred KiB and read on every start: the level trades a few ms once for a small file.
constexpr int kCompressionLevel = 12;

constexpr const char *kSelectKernel = "SELECT manifest, binary_bytes, binary, digest FROM kernels WHERE content = ?1";
constexpr const char *kSelectKernelRow =
    "SELECT manifest, binary_bytes, binary, digest, template, operator, target, config"
    " FROM kernels WHERE content = ?1";
constexpr const char *kListKernels =
    "SELECT content, template, operator, target, config, length(binary), binary_bytes, digest"
    " FROM kernels ORDER BY content";
constexpr const char *kPutKernel =
    "INSERT INTO kernels (content, template, operator, target, config, manifest, binary_bytes, binary, digest)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
    " ON CONFLICT (content) DO UPDATE SET template = excluded.template, operator = excluded.operator,"
    " target = excluded.target, config = excluded.config, manifest = excluded.manifest,"
    " binary_bytes = excluded.binary_bytes, binary = excluded.binary, digest = excluded.digest";

bool decompress(std::span<const std::byte> compressed, int64_t size, std::vector<std::byte> &result) {
  if (size < 0 || size > kMaxBinaryBytes ||
      ZSTD_getFrameContentSize(compressed.data(), compressed.size()) != static_cast<unsigned long long>(size))
    return false;
  result.resize(static_cast<size_t>(size));
  size_t written = ZSTD_decompress(result.data(), result.size(), compressed.data(), compressed.size());
  return !ZSTD_isError(written) && written == result.size();
}

Status compress(std::span<const std::byte> plain, int level, std::vector<std::byte> &result) {
  result.resize(ZSTD_compressBound(plain.size()));
  const size_t written = ZSTD_compress(result.data(), result.size(), plain.data(), plain.size(), level);
  if (ZSTD_isError(written))
    return Status::error(ErrorCode::kInternal, std::string("zstd: ") + ZSTD_getErrorName(written));
  result.resize(written);
  return Status::ok();
}

// Of the first four columns; the digest that it must have may be given.
RowState takeKernel(const Query &query, const std::string &content, StoredKernel &kernel, const Digest::Bytes *known) {
  kernel.content = content;
  kernel.manifest = query.text(0);
  if (!decompress(query.bytes(2), query.integer(1), kernel.binary))
    return RowState::kDamaged;
  const Digest::Bytes digest = digestOf(kernel);
  const std::span<const std::byte> stored = known ? std::span<const std::byte>(*known) : query.bytes(3);
  return std::equal(stored.begin(), stored.end(), digest.begin(), digest.end()) ? RowState::kIntact
                                                                                : RowState::kDamaged;
}

} // namespace

Digest::Bytes digestOf(const StoredKernel &kernel) {
  return Digest().field(kernel.content).field(kernel.manifest).field(kernel.binary).finish();
}

Digest::Bytes digestIn(std::span<const std::byte> column) {
  Digest::Bytes digest{};
  if (column.size() == digest.size())
    std::ranges::copy(column, digest.begin());
  return digest;
}

Result<KernelRow> KernelRow::make(const StoredKernel &kernel) {
  if (kernel.content.empty())
    return Status::invalid("content", "''", "must name the kernel");
  if (kernel.binary.size() > static_cast<size_t>(kMaxBinaryBytes))
    return Status::invalid("binary", std::to_string(kernel.binary.size()) + " bytes",
                           "must be at most " + std::to_string(kMaxBinaryBytes) + " bytes");
  NSA_ASSIGN_OR_RETURN(Manifest manifest, Manifest::parse(kernel.manifest));
  KernelRow row{kernel.content,
                manifest.templateName,
                manifest.op,
                manifest.target,
                formatValues(manifest.config),
                kernel.manifest,
                static_cast<int64_t>(kernel.binary.size()),
                {},
                digestOf(kernel)};
  NSA_RETURN_IF_ERROR(compress(kernel.binary, kCompressionLevel, row.binary));
  return row;
}

Status KernelRow::compressAgain(int level) {
  std::vector<std::byte> plain;
  if (!decompress(binary, binaryBytes, plain))
    return Status::error(ErrorCode::kInternal, "kernel " + content + " does not decompress");
  return compress(plain, level, binary);
}

int readKernel(Connection &connection, const std::string &content, StoredKernel &kernel, RowState &state,
               const Digest::Bytes *digest) {
  Query query(connection, kSelectKernel, content);
  state = RowState::kMissing;
  if (query.step())
    state = takeKernel(query, content, kernel, digest);
  return query.code();
}

int checkKernel(Connection &connection, const std::string &content, bool &intact) {
  StoredKernel kernel;
  RowState state;
  const int code = readKernel(connection, content, kernel, state);
  intact = state == RowState::kIntact;
  return code;
}

int readKernelRow(Connection &connection, const std::string &content, KernelRow &row, RowState &state) {
  Query query(connection, kSelectKernelRow, content);
  state = RowState::kMissing;
  if (!query.step())
    return query.code();
  StoredKernel kernel;
  state = takeKernel(query, content, kernel, nullptr);
  if (state != RowState::kIntact)
    return query.code();
  row = {content, query.text(4), query.text(5), query.text(6), query.text(7), query.text(0), query.integer(1), {}, {}};
  const std::span<const std::byte> binary = query.bytes(2), digest = query.bytes(3);
  row.binary.assign(binary.begin(), binary.end());
  std::copy(digest.begin(), digest.end(), row.digest.begin());
  const Result<Manifest> manifest = Manifest::parse(row.manifest);
  if (!manifest || manifest->templateName != row.templateName || manifest->op != row.op ||
      manifest->target != row.target || formatValues(manifest->config) != row.config)
    state = RowState::kDamaged;
  return query.code();
}

int writeKernelRow(Connection &connection, const KernelRow &row) {
  return Query(connection, kPutKernel, row.content, row.templateName, row.op, row.target, row.config, row.manifest,
               row.binaryBytes, row.binary, row.digest)
      .run();
}

int listKernelRows(Connection &connection, std::vector<KernelSummary> &kernels) {
  Query query(connection, kListKernels);
  while (query.step())
    kernels.push_back({query.text(0), query.text(1), query.text(2), query.text(3), query.text(4), query.integer(5),
                       query.integer(6), digestIn(query.bytes(7))});
  return query.code();
}

} // namespace nsa
