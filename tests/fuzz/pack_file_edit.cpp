#include "tests/fuzz/pack_file_edit.h"

#include "cache/cache_file.h"
#include "cache/kernel_store.h"
#include "cache/pack/pack_digest.h"
#include "cache/pack/pack_file.h"
#include "cache/pack_writer.h"
#include "cache/rows/kernel_rows.h"
#include "tests/fuzz/fuzz_target.h"

#include <cstring>

namespace nsa::fuzz {
namespace {

using sqlite::Connection;
using sqlite::Query;

constexpr int kKernels = 3;
constexpr const char *kDevice = "gpu sm_90a";

StoredKernel kernelOf(int number) {
  StoredKernel kernel;
  kernel.content = Digest().update("kernel " + std::to_string(number)).finishHex();
  kernel.manifest = "manifest 1\nentry attention\ntemplate attention\noperator window\ntarget sm_90a\n"
                    "fixed dtype=bf16 group=8\nconfig key_tile=" +
                    std::to_string(16 * (number + 1)) +
                    "\nrevision 00\nparam view q bf16 3\nparam i32 window\n"
                    "grid ceildiv(max_seqlen_q * 8, 64) ; kv_heads ; batch\nthreads 128\n";
  kernel.binary.resize(static_cast<size_t>(40 * number)); // the first has none
  for (size_t i = 0; i < kernel.binary.size(); ++i)
    kernel.binary[i] = static_cast<std::byte>(i * i);
  return kernel;
}

StoredChoice choiceOf(int number) {
  StoredChoice choice;
  choice.problem = "window dtype=bf16 | batch=" + std::to_string(number);
  choice.device = kDevice;
  choice.content = kernelOf(number).content;
  choice.tuned = number != 0;
  choice.provenance = "driver=580.1 nvrtc=13.0";
  choice.evidence = {{"attention", "key_tile=16", "winner", 0.5, 0.9, ""},
                     {"attention", "key_tile=32", "rejected", 0, 0, "largest difference 0.5"}};
  return choice;
}

std::string makeDatabase() {
  clearInputs();
  const std::string path = writeInput("made.db", "");
  {
    std::string warning;
    // A rollback journal: one file holds everything.
    Result<std::unique_ptr<KernelStore>> store =
        KernelStore::open({.path = path, .journal = Journal::kRollback}, warning);
    expect(store && warning.empty(), "a database can be made: " + warning);
    for (int i = 0; i < kKernels; ++i) {
      const StoredChoice choice = choiceOf(i);
      expect((*store)->put(kernelOf(i), &choice).isOk(), "a kernel can be stored");
    }
    const StoredRoute route{
        "dtype=bf16 qk_dim=64",  kDevice,
        "window.attention_from", 4096,
        "driver=580.1",          {{1024, "row_attention", 0.5, 1, ""}, {1024, "attention", 0.6, 1.2, "slower"}}};
    expect((*store)->putRoute(route).isOk(), "a route can be stored");
  }
  // Fixed, so that the bytes are.
  FileEdit edit(readBack(path));
  edit.execute("UPDATE uses SET day = 20000");
  return edit.finish();
}

std::string makePack() {
  const std::string from = writeInput("from.db", validDatabase());
  const std::string path = writeInput("made.nsapack", "");
  Result<CacheFile> file = CacheFile::open(from);
  expect(file.isOk(), "the database can be read");
  PackRequest request;
  request.source = "0 (fuzz)";
  request.existing = ReplacingFile::Existing::kReplace;
  expect(writePack(*file, path, request).isOk(), "a pack can be written");
  expect(signPack(path, signingKey()).isOk(), "a pack can be signed");
  return readBack(path);
}

std::string withSmallPages(const std::string &content) {
  FileEdit edit(content);
  edit.execute("PRAGMA page_size = 512; VACUUM");
  return edit.finish();
}

} // namespace

SecretKey signingKey() {
  Result<SecretKey> key = SecretKey::parse("key", "nsa-secret-key-1 " + std::string(64, '7'));
  expect(key.isOk(), "the key is one");
  return std::move(*key);
}

const std::string &validDatabase() {
  static const std::string file = makeDatabase();
  return file;
}

const std::string &validPack() {
  static const std::string file = makePack();
  return file;
}

bool isDatabase(std::string_view file) { return file.size() >= 72 && file.substr(68, 4) == "NSAK"; }

FileEdit::FileEdit(std::string_view content) : path(writeInput("edited", content)) {
  int code;
  connection = Connection::open(path, SQLITE_OPEN_READWRITE, code);
  if (connection) {
    connection.liftGuard();
    execute("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY");
  }
}

void FileEdit::execute(const std::string &sql, std::string_view text) { Query(connection, keep(sql), text).run(); }
void FileEdit::execute(const std::string &sql, std::span<const std::byte> bytes) {
  Query(connection, keep(sql), bytes).run();
}
void FileEdit::execute(const std::string &sql, int64_t number) { Query(connection, keep(sql), number).run(); }

std::string FileEdit::bytes(const std::string &sql) {
  Query query(connection, keep(sql));
  if (!query.step())
    return "";
  const std::span<const std::byte> value = query.bytes(0);
  return {reinterpret_cast<const char *>(value.data()), value.size()};
}

int64_t FileEdit::integer(const std::string &sql) {
  Query query(connection, keep(sql));
  return query.step() ? query.integer(0) : 0;
}

void FileEdit::resealKernels() {
  std::vector<KernelSummary> kernels;
  listKernelRows(connection, kernels);
  for (const KernelSummary &row : kernels) {
    StoredKernel kernel;
    RowState state;
    if (readKernel(connection, row.content, kernel, state) != SQLITE_OK || state == RowState::kMissing)
      continue;
    Query(connection, "UPDATE kernels SET digest = ?1 WHERE content = ?2",
          Digest().field(row.content).field(kernel.manifest).field(kernel.binary).finish(), row.content)
        .run();
  }
}

void FileEdit::resealPack() {
  const std::string source = bytes("SELECT value FROM pack WHERE key = 'source'");
  Digest::Bytes evidence{}, digest{};
  if (digestEvidence(connection, evidence) != SQLITE_OK ||
      digestRows(connection, source, evidence, digest) != SQLITE_OK)
    return;
  execute("UPDATE pack SET value = ?1 WHERE key = 'evidence_digest'", std::span<const std::byte>(evidence));
  execute("UPDATE pack SET value = ?1 WHERE key = 'digest'", std::span<const std::byte>(digest));
}

void FileEdit::sign() {
  const std::string stored = bytes("SELECT value FROM pack WHERE key = 'digest'");
  Digest::Bytes digest{};
  if (stored.size() != digest.size())
    return;
  std::memcpy(digest.data(), stored.data(), digest.size());
  const SecretKey key = signingKey();
  const Signature signature = key.sign(signedMessage(digest));
  execute("INSERT OR REPLACE INTO pack (key, value) VALUES ('signature " + key.publicKey().hex() + "', ?1)",
          std::span<const std::byte>(signature));
}

std::string FileEdit::finish() {
  connection.close();
  return readBack(path);
}

std::string expandEdits(const std::string &text) {
  const auto says = [&](const char *line) {
    return ("\n" + text).find(std::string("\n-- ") + line + "\n") != text.npos;
  };
  const std::string &whole = says("database") ? validDatabase() : validPack();
  FileEdit edit(says("small pages") ? withSmallPages(whole) : whole);
  edit.execute(text);
  if (says("reseal kernels"))
    edit.resealKernels();
  if (says("reseal"))
    edit.resealPack();
  if (says("sign"))
    edit.sign();
  return edit.finish();
}

} // namespace nsa::fuzz
