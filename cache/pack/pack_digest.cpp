#include "cache/pack/pack_digest.h"

#include "cache/rows/kernel_rows.h"

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace nsa {

namespace {

using sqlite::Connection;
using sqlite::Query;

constexpr std::string_view kFormat = "nsa pack 1";

// A row's fields begin with the name of its kind; `types` has a letter for each column.
struct Section {
  std::string_view name;
  std::string_view types; // T text, I integer, R real, B blob
  const char *sql;
  void (*keep)(const Query &, PackIndex &) = nullptr;
};

void keepKernel(const Query &row, PackIndex &index) {
  index.addKernel(row.text(0), {row.text(1), row.text(3), row.text(4), digestIn(row.bytes(6))});
}

void keepChoice(const Query &row, PackIndex &index) {
  index.addChoice({row.text(0), row.text(1), row.text(2), row.integer(3) == 1, row.text(4), {}});
}

void keepRoute(const Query &row, PackIndex &index) {
  index.addRoute({row.text(0), row.text(1), row.text(2), row.integer(3), row.text(4), {}});
}

constexpr Section kEvidence[] = {
    {"evidence", "TTITTTRRT",
     "SELECT problem, device, position, template, config, outcome, milliseconds, ratio, detail FROM evidence"
     " ORDER BY problem, device, position"},
    {"route evidence", "TTTIITRRT",
     "SELECT family, device, name, position, size, variant, milliseconds, ratio, detail FROM route_evidence"
     " ORDER BY family, device, name, position"},
};

// The schema first: what the other statements mean hangs on it.
constexpr Section kRows[] = {
    {"schema", "TTT", "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"},
    {"kernel", "TTTTTTB",
     "SELECT content, template, operator, target, config, manifest, digest FROM kernels ORDER BY content", keepKernel},
    {"choice", "TTTIT", "SELECT problem, device, content, tuned, provenance FROM choices ORDER BY problem, device",
     keepChoice},
    {"route", "TTTIT", "SELECT family, device, name, threshold, provenance FROM routes ORDER BY family, device, name",
     keepRoute},
};

std::array<std::byte, 8> littleEndian(uint64_t value) {
  std::array<std::byte, 8> bytes;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return bytes;
}

// A tampered row may hold a number where the schema wants a text; read as a text it would look the same.
bool addColumn(const Query &query, int column, char type, Digest &digest) {
  const int stored = query.type(column);
  switch (type) {
  case 'T':
    digest.field(query.text(column));
    return stored == SQLITE_TEXT;
  case 'I':
    digest.field(littleEndian(static_cast<uint64_t>(query.integer(column))));
    return stored == SQLITE_INTEGER;
  case 'R':
    digest.field(littleEndian(std::bit_cast<uint64_t>(query.real(column))));
    return stored == SQLITE_FLOAT;
  default:
    digest.field(query.bytes(column));
    return stored == SQLITE_BLOB;
  }
}

template <size_t Count>
int addSections(Connection &connection, const Section (&sections)[Count], Digest &digest, PackIndex *index) {
  for (const Section &section : sections) {
    Query query(connection, section.sql);
    while (query.step()) {
      digest.field(section.name);
      for (size_t i = 0; i < section.types.size(); ++i)
        if (!addColumn(query, static_cast<int>(i), section.types[i], digest))
          return SQLITE_MISMATCH;
      if (index && section.keep)
        section.keep(query, *index);
    }
    if (query.code() != SQLITE_OK)
      return query.code();
  }
  return SQLITE_OK;
}

} // namespace

int digestEvidence(Connection &connection, Digest::Bytes &digest) {
  Digest over;
  const sqlite::ShortValues shortOnly(connection);
  const int code = addSections(connection, kEvidence, over, nullptr);
  digest = over.finish();
  return code;
}

int digestRows(Connection &connection, const std::string &source, const Digest::Bytes &evidence, Digest::Bytes &digest,
               PackIndex *index) {
  Digest over;
  const sqlite::ShortValues shortOnly(connection);
  over.field(kFormat).field(source);
  const int code = addSections(connection, kRows, over, index);
  digest = over.field(std::span<const std::byte>(evidence)).finish();
  return code;
}

} // namespace nsa
