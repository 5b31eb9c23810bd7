// How libFuzzer changes a pack or a database: as bytes, or through sqlite, field by field, and then often with digests
// and signature made anew. A file that sqlite does not open any more is changed as bytes.
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pack_file_edit.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <string>

#include <zstd.h>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace nsa::fuzz {
namespace {

constexpr size_t kMostGrowth = 64, kLongestValue = 4096, kHeaderBytes = 100;

struct Field {
  const char *table, *key, *name;
  char type; // T text, I integer, R real, B blob
};
constexpr const char *kChoiceKey = "problem, device", *kEvidenceKey = "problem, device, position",
                     *kRouteKey = "family, device, name", *kRouteEvidenceKey = "family, device, name, position";
constexpr Field kFields[] = {
    {"kernels", "content", "content", 'T'},
    {"kernels", "content", "template", 'T'},
    {"kernels", "content", "operator", 'T'},
    {"kernels", "content", "target", 'T'},
    {"kernels", "content", "config", 'T'},
    {"kernels", "content", "manifest", 'T'},
    {"kernels", "content", "manifest", 'T'},
    {"kernels", "content", "manifest", 'T'},
    {"kernels", "content", "digest", 'B'},
    {"kernels", "content", "binary_bytes", 'I'},
    {"kernels", "content", "binary", 'B'},
    {"choices", kChoiceKey, "problem", 'T'},
    {"choices", kChoiceKey, "device", 'T'},
    {"choices", kChoiceKey, "content", 'T'},
    {"choices", kChoiceKey, "tuned", 'I'},
    {"choices", kChoiceKey, "provenance", 'T'},
    {"evidence", kEvidenceKey, "position", 'I'},
    {"evidence", kEvidenceKey, "outcome", 'T'},
    {"evidence", kEvidenceKey, "milliseconds", 'R'},
    {"routes", kRouteKey, "name", 'T'},
    {"routes", kRouteKey, "threshold", 'I'},
    {"routes", kRouteKey, "provenance", 'T'},
    {"route_evidence", kRouteEvidenceKey, "size", 'I'},
    {"route_evidence", kRouteEvidenceKey, "ratio", 'R'},
    {"pack", "key", "key", 'T'},
    {"pack", "key", "value", 'B'},
    {"uses", "content", "day", 'I'},
};

constexpr const char *kNumbers[] = {
    "-1", "0", "1", "2", "1 << 28", "(1 << 28) + 1", "1 << 40", "-9223372036854775807 - 1", "9223372036854775807"};

constexpr const char *kReals[] = {"0.0", "-1.5", "1e308", "9e999", "-9e999"};

// Rows and schema. What a pack of ours never holds stands here, too.
constexpr const char *kStatements[] = {
    "DELETE FROM kernels WHERE rowid = (SELECT max(rowid) FROM kernels)",
    "DELETE FROM choices",
    "DELETE FROM routes",
    "DELETE FROM evidence",
    "DELETE FROM pack WHERE key LIKE 'signature%'",
    "UPDATE kernels SET binary = (SELECT binary FROM kernels ORDER BY length(binary) DESC LIMIT 1)",
    "UPDATE choices SET content = (SELECT max(content) FROM kernels)",
    "UPDATE kernels SET content = content || 'x' WHERE rowid = 1",
    "INSERT INTO kernels SELECT content || 'y', template, operator, target, config, manifest, digest, binary_bytes, "
    "binary"
    " FROM kernels WHERE rowid = 1",
    "INSERT INTO choices SELECT problem || 'x', device, content, tuned, provenance FROM choices LIMIT 1",
    "INSERT INTO routes SELECT family || 'x', device, name, threshold, provenance FROM routes LIMIT 1",
    "INSERT INTO pack VALUES ('note', x'00')",
    "CREATE INDEX more ON kernels (target)",
    "CREATE VIEW more AS SELECT * FROM kernels",
    "CREATE TABLE more (a PRIMARY KEY, b) WITHOUT ROWID",
    "CREATE TRIGGER more AFTER INSERT ON kernels BEGIN DELETE FROM choices; END",
    "CREATE VIRTUAL TABLE more USING fts5 (a)",
    "DROP TABLE routes",
    "DROP TABLE kernels; CREATE VIEW kernels AS SELECT 1 AS content",
    "ALTER TABLE kernels ADD COLUMN more TEXT",
    "ALTER TABLE kernels ADD COLUMN more TEXT AS (upper(manifest))",
    "ALTER TABLE evidence RENAME COLUMN detail TO details",
    "PRAGMA user_version = 1",
    "PRAGMA user_version = 2",
    "PRAGMA user_version = 4",
    "PRAGMA application_id = 1",
    "PRAGMA application_id = 0x4e53414b",
    "PRAGMA application_id = 0x4e534150",
    "PRAGMA journal_mode = WAL",
    "PRAGMA page_size = 512; VACUUM",
    "PRAGMA page_size = 1024; VACUUM",
    "PRAGMA page_size = 4096; PRAGMA auto_vacuum = FULL; VACUUM",
    "VACUUM",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ' STRICT', '')",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'TEXT', 'BLOB') WHERE name = 'choices'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ' WITHOUT ROWID', '')",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 7 WHERE name = 'kernels'",
    "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE type = 'index'",
};

class Mutation {
public:
  explicit Mutation(unsigned seed) : random(seed) {}

  // Through sqlite. "" when the file does not open.
  std::string edit(const std::string &content) {
    FileEdit file(content);
    if (!file.isOpen())
      return "";
    for (uint32_t i = 0, count = 1 + below(3); i < count; ++i)
      change(file);
    if (below(2))
      file.resealKernels();
    if (below(4))
      file.resealPack();
    if (below(2))
      file.sign();
    return file.finish();
  }

  // The file's header, and those of its pages, where single bytes mean much.
  void changeHeaders(uint8_t *data, size_t size) {
    constexpr size_t kPage = 512;
    const size_t page = below(static_cast<uint32_t>(size / kPage + 1)) * kPage;
    const size_t at = below(2) ? below(kHeaderBytes) : page + below(24);
    if (at < size)
      data[at] = below(2) ? static_cast<uint8_t>(random()) : static_cast<uint8_t>(data[at] ^ 1 << below(8));
  }

  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random()) % limit; }

private:
  template <typename Item, size_t Count> const Item &one(const Item (&items)[Count]) { return items[below(Count)]; }

  std::string mutated(std::string value) {
    const size_t size = std::min(value.size(), kLongestValue);
    value.resize(size + kMostGrowth);
    value.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(value.data()), size, value.size()));
    return value;
  }

  void change(FileEdit &file) {
    switch (below(8)) {
    case 0:
      return file.execute(one(kStatements));
    case 1:
      return changeBinary(file);
    default:
      return changeField(file, one(kFields));
    }
  }

  std::string row(FileEdit &file, const Field &field) {
    const int64_t rows = file.integer(std::string("SELECT count(*) FROM ") + field.table);
    const int64_t number = rows > 0 ? below(static_cast<uint32_t>(std::min<int64_t>(rows, 1000))) : 0;
    return std::string(" WHERE (") + field.key + ") = (SELECT " + field.key + " FROM " + field.table +
           " LIMIT 1 OFFSET " + std::to_string(number) + ")";
  }

  void changeField(FileEdit &file, const Field &field) {
    const std::string where = row(file, field);
    const std::string set = std::string("UPDATE OR IGNORE ") + field.table + " SET " + field.name + " = ";
    if (field.type == 'I')
      return file.execute(set + one(kNumbers) + where);
    if (field.type == 'R')
      return file.execute(set + one(kReals) + where);
    const std::string value = mutated(file.bytes(std::string("SELECT ") + field.name + " FROM " + field.table + where));
    if (field.type == 'T')
      return file.execute(set + "?1" + where, std::string_view(value));
    file.execute(set + "?1" + where, std::as_bytes(std::span(value)));
  }

  // A kernel's binary, in a frame that holds.
  void changeBinary(FileEdit &file) {
    const std::string where = row(file, {"kernels", "content", "binary", 'B'});
    const std::string frame = file.bytes("SELECT binary FROM kernels" + where);
    std::string binary(kLongestValue, '\0');
    const size_t size = ZSTD_decompress(binary.data(), binary.size(), frame.data(), frame.size());
    binary.resize(ZSTD_isError(size) ? 0 : size);
    binary = mutated(std::move(binary));
    std::string packed(ZSTD_compressBound(binary.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), binary.data(), binary.size(), 1));
    file.execute("UPDATE kernels SET binary = ?1" + where, std::as_bytes(std::span(packed)));
    if (below(4))
      file.execute("UPDATE kernels SET binary_bytes = ?1" + where, static_cast<int64_t>(binary.size()));
  }

  std::minstd_rand random;
};

} // namespace
} // namespace nsa::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  nsa::fuzz::Mutation mutation(seed);
  const uint32_t way = mutation.below(8);
  if (way < 5) {
    const std::string content = mutation.edit({reinterpret_cast<const char *>(data), size});
    if (!content.empty() && content.size() <= maxSize) {
      std::memcpy(data, content.data(), content.size());
      return content.size();
    }
  }
  if (way < 7 && size != 0) {
    mutation.changeHeaders(data, size);
    return size;
  }
  return LLVMFuzzerMutate(data, size, maxSize);
}
