// Files whose schema is a hostile program: the file is refused before any of it runs. Each case is read
// in a process of its own that is ended after two minutes, as what it tries would take hours.
#include "cache/database/schema.h"
#include "cache/rows/kernel_rows.h"
#include "cache/verification.h"
#include "tests/cache/pack_fixture.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>

namespace nsa {
namespace {

// Compares two million characters at each of two million places: minutes in one call, which nothing interrupts.
const std::string kSlow = "(instr(hex(zeroblob(2000000)), hex(zeroblob(1000000)) || '1') > 0)";

// Statements for a connection that may write the schema; they leave rows and digests as they are.
struct Change {
  const char *name;
  std::string sql;
};

std::string rewrite(const std::string &table, const std::string &from, const std::string &to) {
  std::string quoted;
  for (const char c : to)
    quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return "UPDATE sqlite_schema SET sql = replace(sql, '" + from + "', '" + quoted + "') WHERE name = '" + table + "';";
}

std::vector<Change> changes() {
  const std::string columns = "content, template, operator, target, config, manifest, digest, binary_bytes, binary";
  const std::string giant(1 << 20, 'x');
  return {
      {"a generated column beside the others",
       rewrite("kernels", "binary       BLOB    NOT NULL",
               "binary BLOB NOT NULL, more INTEGER GENERATED ALWAYS AS (" + kSlow + ") VIRTUAL")},
      {"a generated column in the place of one",
       rewrite("choices", "provenance TEXT    NOT NULL",
               "provenance TEXT NOT NULL GENERATED ALWAYS AS (CAST(" + kSlow + " AS TEXT)) VIRTUAL")},
      {"a generated column without a function",
       rewrite("routes", "provenance TEXT    NOT NULL", "provenance TEXT NOT NULL AS (family || device)")},
      {"a generated column of the facts", rewrite("pack", "value BLOB NOT NULL", "value BLOB AS (" + kSlow + ")")},
      {"a view in the place of a table",
       "CREATE TABLE hidden AS SELECT * FROM kernels; DROP TABLE kernels; CREATE VIEW kernels AS SELECT " + columns +
           " FROM hidden WHERE NOT " + kSlow},
      {"a view in the place of the facts", "CREATE TABLE hidden AS SELECT * FROM pack; DROP TABLE pack; CREATE VIEW "
                                           "pack AS SELECT * FROM hidden WHERE NOT " +
                                               kSlow},
      {"a view beside the tables", "CREATE VIEW more AS SELECT " + kSlow},
      {"a trigger", "CREATE TRIGGER more AFTER INSERT ON kernels BEGIN SELECT " + kSlow + "; END"},
      {"a check",
       rewrite("choices", "provenance TEXT    NOT NULL", "provenance TEXT NOT NULL CHECK (NOT " + kSlow + ")")},
      {"an index on an expression", "CREATE INDEX more ON evidence (detail || 'x')"},
      {"an index with a condition", "CREATE INDEX more ON choices (content) WHERE tuned + 1 > 1"},
      {"a default",
       rewrite("choices", "provenance TEXT    NOT NULL", "provenance TEXT NOT NULL DEFAULT (" + kSlow + ")")},
      {"a collation", rewrite("choices", "provenance TEXT    NOT NULL", "provenance TEXT NOT NULL COLLATE NOCASE")},
      {"a table beside the others", "CREATE TABLE more (a)"},
      {"statistics that are computed",
       "CREATE TABLE more (tbl, idx, stat); INSERT INTO more VALUES ('kernels', NULL, '1');" +
           rewrite("more", "more (tbl, idx, stat)", "sqlite_stat1(tbl, idx, base, stat AS (" + kSlow + "))") +
           "UPDATE sqlite_schema SET name = 'sqlite_stat1', tbl_name = 'sqlite_stat1' WHERE name = 'more'"},
      {"a giant text", rewrite("routes", "CREATE TABLE routes (", "CREATE TABLE routes ( /* " + giant + " */ ")},
      {"a giant default",
       rewrite("choices", "provenance TEXT    NOT NULL", "provenance TEXT NOT NULL DEFAULT '" + giant + "'")},
      {"a table of another shape", rewrite("routes", ") STRICT", ")")},
  };
}

class HostileTest : public PackTest {
protected:
  // Through the schema table, as an attacker would who need not keep sqlite's rules.
  static void apply(const std::string &file, const std::string &statements) {
    runSql(file, "PRAGMA foreign_keys = OFF; PRAGMA writable_schema = ON; BEGIN; " + statements +
                     "; COMMIT; PRAGMA writable_schema = OFF");
  }
  // Signs the pack. The rules demand that signature.
  SignatureRules sign() const {
    const SecretKey key = SecretKey::generate();
    EXPECT_TRUE(signPack(packPath, key).isOk());
    const SignatureRules rules{.requireSignature = true, .trusted = {key.publicKey()}};
    openPack(rules);
    return rules;
  }
  void expectRefused(const std::string &file, const std::string &reason) const {
    const Result<CacheFile> opened = CacheFile::open(file);
    ASSERT_FALSE(opened) << "it was opened";
    EXPECT_NE(opened.status().toString().find(reason), std::string::npos) << opened.status().toString();
    const Verification verified = verifyCache(file, {});
    ASSERT_EQ(verified.findings.size(), 1u) << "and no row was looked at";
    EXPECT_NE(verified.findings.front().find(reason), std::string::npos) << verified.findings.front();
  }
};

TEST_F(HostileTest, ASchemaOfAnotherMakerRefusesAPack) {
  makePack();
  const std::string good = readFile(packPath);
  for (const Change &change : changes()) {
    SCOPED_TRACE(change.name);
    writeFile(packPath, good);
    apply(packPath, change.sql);
    ASSERT_TRUE(readFile(packPath) != good);
    expectGoodEnd(startProcess([&] {
      EXPECT_NE(refusal().find("its tables are not those of a pack"), std::string::npos) << refusal();
      expectRefused(packPath, "its tables are not those of a pack");
    }));
  }
}

// One that is named as a source, to read; and one that is the own, which makes room for a new one.
TEST_F(HostileTest, ASchemaOfAnotherMakerRefusesADatabase) {
  fill({0, 1}, path);
  sql("PRAGMA journal_mode = DELETE");
  const std::string good = readFile(path);
  for (const Change &change : changes()) {
    SCOPED_TRACE(change.name);
    if (change.sql.find("pack") != std::string::npos)
      continue; // it has no such table
    writeFile(path, good);
    apply(path, change.sql);
    const std::string bytes = readFile(path);
    ASSERT_TRUE(bytes != good);
    expectGoodEnd(startProcess([&] {
      expectRefused(path, "it is damaged");
      EXPECT_TRUE(readFile(path) == bytes) << "who reads leaves it alone";
      std::string warning;
      EXPECT_FALSE(holdsKernel(*openStore(path, warning), 1));
      EXPECT_NE(warning.find("it was renamed to"), std::string::npos) << warning;
    }));
    for (const std::string &name : scratch.list())
      std::filesystem::remove(scratch.file(name));
  }
}

// Every schema that was ever written opens: with the digest last, with an index in a pack, after ANALYZE.
TEST_F(HostileTest, OurOwnSchemasAreKnown) {
  makePack();
  const std::string index = "CREATE INDEX choices_by_content ON choices (content)";
  runSql(packPath, index);
  EXPECT_TRUE(PackFile::open(packPath)) << PackFile::open(packPath).status().toString();
  sql("ANALYZE");
  EXPECT_EQ(sql("SELECT count(*) > 0 FROM sqlite_stat1"), "1");
  expectKernel(*openStore(), 1);

  const std::string old = scratch.file("old.db");
  runSql(old, "CREATE TABLE kernels (\n  content      TEXT    NOT NULL PRIMARY KEY,\n"
              "  template     TEXT    NOT NULL,\n  operator     TEXT    NOT NULL,\n  target       TEXT    NOT NULL,\n"
              "  config       TEXT    NOT NULL,\n  manifest     TEXT    NOT NULL,\n  binary_bytes INTEGER NOT NULL,\n"
              "  binary       BLOB    NOT NULL,\n  digest       BLOB    NOT NULL\n) STRICT");
  for (const char *table : {"choices", "evidence", "choices_by_content"})
    runSql(old, sql("SELECT sql FROM sqlite_schema WHERE name = '" + std::string(table) + "'"));
  runSql(old, "ATTACH '" + path +
                  "' AS new; INSERT INTO kernels SELECT content, template, operator, target, config,"
                  " manifest, binary_bytes, binary, digest FROM new.kernels; PRAGMA application_id = " +
                  std::to_string(applicationOf(FileKind::kDatabase)) + "; PRAGMA user_version = 1");
  EXPECT_EQ(verifyCache(old, {}).findings, std::vector<std::string>());
  std::string warning;
  expectKernel(*openStore(old, warning), 1);
  EXPECT_EQ(warning, "");
  EXPECT_EQ(runSql(old, "PRAGMA user_version"), "3") << "it was brought up to date";
}

// No row of ours is as long, and a text is refused by its length alone; a kernel's binary may be longer.
TEST_F(HostileTest, AGiantTextRefusesAPack) {
  {
    const StoredKernel big = makeKernel(1, 12 << 20);
    const StoredChoice choice = makeChoice(1, true);
    ASSERT_TRUE(openStore()->put(big, &choice).isOk());
  }
  ASSERT_TRUE(exportFrom(path, packPath));
  expectKernel(*openPack(), 1, 12 << 20);
  const std::string good = readFile(packPath);
  for (const char *column : {"kernels SET manifest", "kernels SET config", "choices SET provenance"}) {
    SCOPED_TRACE(column);
    writeFile(packPath, good);
    runSql(packPath, std::string("UPDATE ") + column + " = printf('%.*c', 8000000, 'x')");
    EXPECT_NE(refusal().find("too big"), std::string::npos) << refusal();
  }
  writeFile(packPath, good);
  runSql(packPath, "UPDATE evidence SET detail = printf('%.*c', 8000000, 'x')");
  const Result<CacheFile> file = CacheFile::open(packPath);
  ASSERT_FALSE(file);
  EXPECT_NE(file.status().toString().find("too big"), std::string::npos) << file.status().toString();
}

constexpr size_t kPage = 4096;

void put(std::string &bytes, size_t at, size_t value, size_t size) {
  for (size_t i = 0; i < size; ++i)
    bytes[at + i] = static_cast<char>(value >> 8 * (size - 1 - i));
}

size_t rootOf(const std::string &file, const std::string &name) {
  return std::stoul(runSql(file, "SELECT rootpage FROM sqlite_schema WHERE name = '" + name + "'"));
}

std::string pageOf(const std::string &bytes, size_t page) { return bytes.substr((page - 1) * kPage, kPage); }

// The first cell of an index's leaf, which has no overflow pages.
std::string firstCell(const std::string &leaf) {
  EXPECT_EQ(leaf[0], 10) << "a leaf of an index";
  const auto byteAt = [&](size_t at) { return size_t{static_cast<uint8_t>(leaf[at])}; };
  const size_t at = byteAt(8) << 8 | byteAt(9);
  const size_t length = byteAt(at) < 128 ? 1 + byteAt(at) : 2 + ((byteAt(at) & 0x7f) << 7 | byteAt(at + 1));
  EXPECT_LT(length, 400u);
  return leaf.substr(at, length);
}

// Makes the leaf that is the whole of an index the end of a chain of `inner` pages, the root first. Each names the
// next one `cells` times, with one `cell` for all of them.
void multiply(std::string &bytes, size_t root, size_t inner, size_t cells, const std::string &cell) {
  const std::string leaf = pageOf(bytes, root);
  ASSERT_EQ(leaf[0], 10) << "a leaf of an index";
  const size_t first = bytes.size() / kPage; // pages count from 1, so this is one less than the first that is added
  bytes += std::string((inner - 1) * kPage, '\0') + leaf;
  for (size_t i = 0; i < inner; ++i) {
    const size_t page = i == 0 ? root : first + i, next = first + 1 + i;
    const size_t at = (page - 1) * kPage, content = kPage - 4 - cell.size();
    bytes.replace(at, kPage, std::string(kPage, '\0'));
    bytes[at] = 2;
    put(bytes, at + 3, cells, 2);
    put(bytes, at + 5, content, 2);
    put(bytes, at + 8, next, 4);
    for (size_t k = 0; k < cells; ++k)
      put(bytes, at + 12 + 2 * k, content, 2);
    put(bytes, at + content, next, 4);
    bytes.replace(at + content + 4, cell.size(), cell);
  }
  put(bytes, 28, bytes.size() / kPage, 4);
}

// What it takes is bounded, however busy the machine is.
void expectShort(const char *what, const std::function<void()> &body) {
  const auto seconds = [] {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  };
  const double begin = seconds();
  body();
  EXPECT_LT(seconds() - begin, 2) << "seconds of the processor for " << what;
}

// Each way in which rows are read, of a signed pack under the policy that wants the signature, and of any other.
void expectShortRefusals(const std::string &file, const SignatureRules &rules) {
  for (const SignatureRules &policy : {rules, SignatureRules{}}) {
    expectShort("an engine", [&] { EXPECT_FALSE(Pack::open(file, policy)); });
    expectShort("a list", [&] {
      EXPECT_FALSE(CacheFile::open(file, CacheFile::Check::kRows, CacheFile::Empty::kRefused, policy));
    });
    expectShort("a source", [&] { EXPECT_FALSE(openSource(file, policy, Databases::kAccepted)); });
    expectShort("verify", [&] { EXPECT_FALSE(verifyCache(file, policy).findings.empty()); });
  }
  expectShort("doctor", [&] {
    if (Result<CacheFile> opened = CacheFile::open(file, CacheFile::Check::kNothing)) {
      (void)opened->kernels();
      (void)opened->choices();
      (void)opened->routes();
    }
  });
}

// Each row of evidence names a choice, which is found past choices with long keys: with twice as many bytes in both,
// four times the time. Half a minute for these 32 MB.
TEST_F(HostileTest, LongKeysAreNotCompared) {
  makePack(1);
  fill({0}, path);
  sql("PRAGMA journal_mode = DELETE");
  for (const std::string &file : {packPath, path}) {
    SCOPED_TRACE(file);
    const std::string good = readFile(file);
    apply(file,
          "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 6)"
          " INSERT INTO choices SELECT 'a' || i || printf('%.*c', 4000000, 'x'), 'd', content, 1, '' FROM n, kernels;"
          "INSERT INTO choices SELECT 'a3', 'd', content, 1, '' FROM kernels;"
          "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)"
          " INSERT INTO evidence SELECT 'a3', 'd', i, '', '', '', 1.0, 1.0, '' FROM n");
    expectGoodEnd(startProcess([&] {
      expectShort("verify",
                  [&] { expectRefused(file, "a key of its table choices has 4000002 bytes, must have at most 4096"); });
      expectShort("a source", [&] { EXPECT_FALSE(openSource(file, {}, Databases::kAccepted)); });
    }));
    writeFile(file, good);
  }
}

TEST_F(HostileTest, EachKeyHasALimit) {
  makePack(2);
  fill({0, 1}, path);
  const std::string goodPack = readFile(packPath);
  sql("PRAGMA journal_mode = DELETE");
  sql("INSERT OR REPLACE INTO uses SELECT content, 1 FROM kernels");
  sql("INSERT INTO leases VALUES ('p', 'd', 'w', 'o', 'h', 1, 1, 1)");
  const std::string good = readFile(path);
  struct Key {
    const char *table, *column;
    bool isInPack = true;
  };
  for (const auto &[table, column, isInPack] : {Key{"kernels", "content"},
                                                {"choices", "problem"},
                                                {"choices", "device"},
                                                {"choices", "content"},
                                                {"evidence", "problem"},
                                                {"evidence", "device"},
                                                {"routes", "family"},
                                                {"routes", "device"},
                                                {"routes", "name"},
                                                {"route_evidence", "family"},
                                                {"route_evidence", "device"},
                                                {"route_evidence", "name"},
                                                {"uses", "content", false},
                                                {"leases", "problem", false},
                                                {"leases", "device", false},
                                                {"leases", "work", false}})
    for (const std::string &file : {packPath, path}) {
      if (file == packPath && !isInPack)
        continue;
      SCOPED_TRACE(std::string(table) + "." + column + " of " + file);
      const std::string begin = "UPDATE " + std::string(table) + " SET " + column + " = printf('%.*c', ";
      const std::string end =
          ", 'x') WHERE " + std::string(column) + " = (SELECT min(" + column + ") FROM " + table + ")";
      ASSERT_EQ(runSql(file, "SELECT count(*) > 0 FROM " + std::string(table)), "1");
      for (const int bytes : {4096, 4097}) {
        writeFile(file, file == path ? good : goodPack);
        apply(file, begin + std::to_string(bytes) + end);
        const Result<CacheFile> opened = CacheFile::open(file, CacheFile::Check::kNothing);
        EXPECT_EQ(opened.isOk(), bytes == 4096) << opened.status().toString();
        if (!opened)
          EXPECT_NE(opened.status().toString().find("a key of its table " + std::string(table) +
                                                    " has 4097 bytes, must have at most 4096"),
                    std::string::npos)
              << opened.status().toString();
      }
    }
}

// Pages that name each other hold rows without end: a chain of 16 inner pages, each of which names the next one 200
// times, is 10^36 rows in a file of 70 KB.
TEST_F(HostileTest, RowsWithoutEndEnd) {
  makePack();
  std::string bytes = readFile(packPath);
  const size_t root = rootOf(packPath, "evidence");
  multiply(bytes, root, 16, 200, firstCell(pageOf(bytes, root)));
  writeFile(packPath, bytes);
  expectGoodEnd(startProcess([&] {
    EXPECT_TRUE(openPack()) << "an engine does not read the evidence";
    EXPECT_FALSE(CacheFile::open(packPath));
    EXPECT_FALSE(verifyCache(packPath, {}).findings.empty());
  }));
}

// Two inner pages hold 62,500 rows, all with one text of 4,000,000 bytes: 250 GB to read in a file of 4 MB. The facts
// and the signature belong to the pack as it was.
TEST_F(HostileTest, LongTextsOfManyRowsEnd) {
  makePack(1);
  const SignatureRules rules = sign();
  const std::string good = readFile(packPath);
  struct Case {
    const char *index, *text;
  };
  for (const Case &shared : {Case{"sqlite_autoindex_kernels_1", "kernels SET manifest"},
                             Case{"choices", "choices SET provenance"}, Case{"routes", "routes SET provenance"}}) {
    SCOPED_TRACE(shared.index);
    writeFile(packPath, good);
    const size_t root = rootOf(packPath, shared.index);
    const std::string cell = firstCell(pageOf(good, root));
    runSql(packPath, std::string("UPDATE ") + shared.text + " = printf('%.*c', 4000000, 'x')");
    std::string bytes = readFile(packPath);
    multiply(bytes, root, 2, 250, cell);
    ASSERT_LT(bytes.size(), 4200000u);
    writeFile(packPath, bytes);
    expectGoodEnd(startProcess([&] { expectShortRefusals(packPath, rules); }));
  }
}

// A file's length costs nothing: what has no place on the disk allows no work.
TEST_F(HostileTest, RowsWithoutEndOfASparseFileEnd) {
  makePack(1);
  const SignatureRules rules = sign();
  constexpr size_t kSparsePages = size_t{1} << 28;
  std::string bytes = readFile(packPath);
  const size_t root = rootOf(packPath, "choices");
  multiply(bytes, root, 16, 200, firstCell(pageOf(bytes, root)));
  put(bytes, 28, kSparsePages, 4);
  writeFile(packPath, bytes);
  std::filesystem::resize_file(packPath, kSparsePages * kPage);
  expectGoodEnd(startProcess([&] { expectShortRefusals(packPath, rules); }));
}

// 200 frames of a few KB, each of 64 MiB of zeros.
TEST_F(HostileTest, KernelsThatUnpackToGigabytesEnd) {
  makePack(1);
  StoredKernel kernel = makeKernel(0);
  kernel.binary.assign(size_t{64} << 20, std::byte{0});
  Result<KernelRow> row = KernelRow::make(kernel);
  ASSERT_TRUE(row) << row.status().toString();
  {
    int code = SQLITE_OK;
    sqlite::Connection connection = sqlite::Connection::open(packPath, SQLITE_OPEN_READWRITE, code);
    ASSERT_EQ(code, SQLITE_OK);
    connection.liftGuard();
    for (int i = 0; i < 200; ++i) {
      row->content = "bomb " + std::to_string(i);
      ASSERT_EQ(writeKernelRow(connection, *row), SQLITE_OK);
    }
  }
  expectGoodEnd(startProcess([&] {
    expectShort("verify", [&] {
      const std::vector<std::string> findings = verifyCache(packPath, {}).findings;
      EXPECT_TRUE(std::ranges::any_of(findings, [](const std::string &finding) {
        return finding.find("unpack to more than") != std::string::npos;
      })) << ::testing::PrintToString(findings);
    });
    expectShort("a source", [&] { EXPECT_FALSE(openSource(packPath, {}, Databases::kAccepted)); });
  }));
}

// No digest covers what ANALYZE leaves behind, and nothing of ours runs it on a pack.
TEST_F(HostileTest, StatisticsRefuseAPack) {
  makePack();
  runSql(packPath, "ANALYZE");
  ASSERT_EQ(runSql(packPath, "SELECT count(*) > 0 FROM sqlite_stat1"), "1");
  EXPECT_NE(refusal().find("its tables are not those of a pack"), std::string::npos) << refusal();
  expectRefused(packPath, "its tables are not those of a pack");
}

} // namespace
} // namespace nsa
