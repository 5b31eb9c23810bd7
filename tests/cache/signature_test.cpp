// Keys and the signatures of packs: only a trusted key's signature of this very digest counts.
#include "cache/rows/kernel_rows.h"
#include "cache/verification.h"
#include "tests/cache/pack_fixture.h"

#include <sys/stat.h>

namespace nsa {
namespace {

class SignatureTest : public PackTest {
protected:
  std::string writeSecret(const std::string &name, const SecretKey &key) const {
    const std::string file = scratch.write(name, key.text());
    chmod(file.c_str(), 0600);
    return file;
  }
};

TEST_F(SignatureTest, KeysGoThroughTheirFiles) {
  const SecretKey key = SecretKey::generate();
  Result<SecretKey> again = SecretKey::read(writeSecret("k.secret", key));
  ASSERT_TRUE(again) << again.status().toString();
  EXPECT_EQ(again->publicKey(), key.publicKey());
  Result<PublicKey> open = PublicKey::read(scratch.write("k.public", key.publicKey().text()));
  ASSERT_TRUE(open) << open.status().toString();
  EXPECT_EQ(*open, key.publicKey());
  EXPECT_NE(SecretKey::generate().publicKey(), key.publicKey());
}

// Test 2 of RFC 8032, 7.1: what another program signs with the same key is the same.
TEST_F(SignatureTest, IsEd25519) {
  Result<SecretKey> key = SecretKey::parse("key", "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->publicKey().hex(), "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  const std::byte message[] = {std::byte{0x72}};
  const Signature signature = key->sign(message);
  EXPECT_EQ(toHex(signature), "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                              "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  EXPECT_TRUE(key->publicKey().verifies(message, signature));
  const std::byte other[] = {std::byte{0x73}};
  EXPECT_FALSE(key->publicKey().verifies(other, signature));
}

TEST_F(SignatureTest, KeyFilesThatCannotBeUsedAreNamed) {
  const SecretKey key = SecretKey::generate();
  const auto secretError = [&](const std::string &file) { return SecretKey::read(file).status().toString(); };
  const auto publicError = [&](const std::string &file) { return PublicKey::read(file).status().toString(); };
  EXPECT_NE(secretError(scratch.file("none")).find("'" + scratch.file("none") + "' cannot be read"), std::string::npos);
  EXPECT_NE(publicError(scratch.file("none")).find("cannot be read"), std::string::npos);
  const std::string secret = writeSecret("k.secret", key);
  EXPECT_NE(publicError(secret).find("must be 'nsa-public-key-1', a blank and 64 digits"), std::string::npos);
  EXPECT_EQ(publicError(secret).find(key.text().substr(20, 20)), std::string::npos) << "a secret is never printed";
  chmod(secret.c_str(), 0640);
  EXPECT_NE(secretError(secret).find("others than its owner may open it"), std::string::npos);
  const std::string open = scratch.write("k.public", key.publicKey().text());
  chmod(open.c_str(), 0666);
  EXPECT_NE(publicError(open).find("everyone may write '"), std::string::npos) << publicError(open);
  for (const char *text : {"", "nsa-public-key-1 12", "nsa-public-key-2 ", "zz"})
    EXPECT_FALSE(PublicKey::parse("key", text)) << text;
}

TEST_F(SignatureTest, OnlyATrustedSignatureOpensAPackThatNeedsOne) {
  makePack();
  const SecretKey ours = SecretKey::generate(), theirs = SecretKey::generate();
  const SignatureRules rules{true, {ours.publicKey()}};
  EXPECT_NE(refusal(rules).find("it is not signed"), std::string::npos) << refusal(rules);
  ASSERT_TRUE(signPack(packPath, theirs).isOk());
  EXPECT_NE(refusal(rules).find("none of the keys that signed it is trusted"), std::string::npos) << refusal(rules);
  EXPECT_NE(refusal(rules).find(theirs.publicKey().hex()), std::string::npos) << "which one it was";
  ASSERT_TRUE(signPack(packPath, ours).isOk());
  expectKernel(*openPack(rules), 1);
  EXPECT_NE(refusal({true, {}}).find("none of the keys"), std::string::npos) << "no key is trusted by itself";
  expectKernel(*openPack(), 1);
}

// What was signed serves, even when another process rewrites the file in place and makes its row digests agree.
TEST_F(SignatureTest, WhatIsChangedAfterOpeningDoesNotServe) {
  fill({0, 1, 2}, path);
  // More than sqlite keeps in memory, so that it reads again what it has read for the digest.
  sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)"
      " INSERT INTO choices SELECT 'window filler=' || i, 'gpu sm_90a', (SELECT min(content) FROM kernels), 1,"
      " hex(zeroblob(450)) FROM n");
  ASSERT_TRUE(exportFrom(path, packPath));
  const SecretKey key = SecretKey::generate();
  ASSERT_TRUE(signPack(packPath, key).isOk());
  std::unique_ptr<Pack> pack = openPack({true, {key.publicKey()}});

  StoredKernel other = makeKernel(1);
  other.binary = makeKernel(7).binary;
  const Result<KernelRow> row = KernelRow::make(other);
  ASSERT_TRUE(row) << row.status().toString();
  {
    int code;
    sqlite::Connection connection = sqlite::Connection::open(packPath, SQLITE_OPEN_READWRITE, code);
    ASSERT_EQ(writeKernelRow(connection, *row), SQLITE_OK);
  }
  runSql(packPath, "UPDATE choices SET content = '" + other.content + "', tuned = 0 WHERE problem LIKE '%=2'");
  Result<CacheFile> changed = CacheFile::open(packPath, CacheFile::Check::kNothing);
  ASSERT_TRUE(changed) << changed.status().toString();
  ASSERT_EQ((*changed->kernel(other.content))->binary, other.binary) << "the row is good by its own digest";

  EXPECT_FALSE(pack->findKernel(other.content).has_value());
  EXPECT_EQ(pack->counters().damagedRows, 1u);
  const StoredChoice choice = makeChoice(2, true);
  EXPECT_EQ(pack->findChoice(choice.problem, choice.device), choice);
  expectKernel(*pack, 2);
  EXPECT_NE(refusal({true, {key.publicKey()}}).find("its digest is not that"), std::string::npos);
}

TEST_F(SignatureTest, SigningChangesNothingElseAndIsTheSameEachTime) {
  makePack();
  const std::string unsignedBytes = readFile(packPath);
  const SecretKey key = SecretKey::generate();
  ASSERT_TRUE(signPack(packPath, key).isOk());
  const std::string bytes = readFile(packPath);
  writeFile(packPath, unsignedBytes);
  ASSERT_TRUE(signPack(packPath, key).isOk());
  EXPECT_TRUE(readFile(packPath) == bytes);
  ASSERT_TRUE(signPack(packPath, key).isOk());
  const Result<PackFile> file = PackFile::open(packPath);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->facts.signatures.size(), 1u) << "one per key";
}

TEST_F(SignatureTest, ASignatureOfSomethingElseIsRefused) {
  makePack();
  const SecretKey key = SecretKey::generate();
  const SignatureRules rules{true, {key.publicKey()}};
  ASSERT_TRUE(signPack(packPath, key).isOk());
  const std::string good = readFile(packPath);
  // Another digest that fits the rows: who changes a pack can compute it, but not sign it.
  runSql(packPath, "UPDATE routes SET threshold = -1");
  Result<PackFile> changed = PackFile::open(packPath);
  ASSERT_TRUE(changed);
  EXPECT_FALSE(changed->checkDigest().isOk());
  EXPECT_NE(refusal(rules).find("its digest is not that"), std::string::npos) << refusal(rules);
  writeFile(packPath, good);
  runSql(packPath, "UPDATE pack SET value = zeroblob(64) WHERE key LIKE 'signature %'");
  EXPECT_NE(refusal(rules).find("its signature is not that of its digest"), std::string::npos) << refusal(rules);
}

// A pack that was changed and has a new digest keeps the signature of the old digest, or has none.
TEST_F(SignatureTest, AFalseSignatureIsRefusedWhateverTheRules) {
  makePack();
  const SecretKey ours = SecretKey::generate(), theirs = SecretKey::generate();
  ASSERT_TRUE(signPack(packPath, ours).isOk());
  const std::string good = readFile(packPath);
  const auto expectRefused = [&](const std::string &reason) {
    const std::string before = readFile(packPath);
    for (const SignatureRules &rules :
         {SignatureRules{}, SignatureRules{false, {ours.publicKey()}}, SignatureRules{true, {ours.publicKey()}}}) {
      EXPECT_NE(refusal(rules).find(reason), std::string::npos) << refusal(rules);
      const Result<CacheFile> source = openSource(packPath, rules, Databases::kAccepted);
      ASSERT_FALSE(source);
      EXPECT_NE(source.status().toString().find(reason), std::string::npos) << source.status().toString();
    }
    EXPECT_FALSE(CacheFile::open(packPath)) << "who lists it would show what was not signed";
    for (const SecretKey *key : {&ours, &theirs}) {
      const Status status = signPack(packPath, *key);
      EXPECT_NE(status.toString().find(reason), std::string::npos)
          << "a false one is not replaced: " << status.toString();
    }
    EXPECT_TRUE(readFile(packPath) == before);
  };
  runSql(packPath, "UPDATE pack SET value = zeroblob(64) WHERE key LIKE 'signature %'");
  expectRefused("its signature is not that of its digest: key " + ours.publicKey().hex() + " did not make it");

  // By a key that is not known, beside a good one.
  writeFile(packPath, good);
  runSql(packPath, "INSERT INTO pack VALUES ('signature " + theirs.publicKey().hex() + "', zeroblob(64))");
  expectRefused("key " + theirs.publicKey().hex() + " did not make it");

  // More than are looked at.
  writeFile(packPath, good);
  runSql(packPath, "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 60)"
                   " INSERT INTO pack SELECT 'signature ' || printf('%.62c', 'a') || i, zeroblob(64) FROM n");
  expectRefused("it has more than 32 signatures");
}

TEST_F(SignatureTest, KeysWithoutTheRequirementWarn) {
  makePack();
  const SecretKey ours = SecretKey::generate(), theirs = SecretKey::generate();
  const SignatureRules rules{false, {ours.publicKey()}};
  EXPECT_EQ(openPack()->warning(), "");
  const auto expectWarning = [&] {
    const std::string reason = "'" + packPath + "' is used although none of the trusted keys has signed it";
    EXPECT_NE(openPack(rules)->warning().find(reason), std::string::npos) << openPack(rules)->warning();
    const Result<CacheFile> source = openSource(packPath, rules, Databases::kAccepted);
    ASSERT_TRUE(source) << source.status().toString();
    EXPECT_NE(source->warning().find(reason), std::string::npos) << source->warning();
  };
  expectWarning();
  ASSERT_TRUE(signPack(packPath, theirs).isOk());
  expectWarning();
  ASSERT_TRUE(signPack(packPath, ours).isOk());
  EXPECT_EQ(openPack(rules)->warning(), "");
  EXPECT_EQ(openSource(packPath, rules, Databases::kAccepted)->warning(), "");
}

// What is taken from a pack is believed afterwards, so all of it is looked at before: also what an engine would skip.
TEST_F(SignatureTest, RowsAreTakenFromAPackThatIsWhole) {
  makePack();
  const SecretKey key = SecretKey::generate();
  ASSERT_TRUE(signPack(packPath, key).isOk());
  const SignatureRules rules{true, {key.publicKey()}};
  EXPECT_TRUE(openSource(packPath, rules, Databases::kRefused));
  const std::string good = readFile(packPath);
  const std::pair<std::string, std::string> changes[] = {
      {"UPDATE evidence SET milliseconds = 0.1", "its evidence digest is not that of its evidence"},
      {"DELETE FROM route_evidence", "its evidence digest is not that of its evidence"},
      {"UPDATE kernels SET binary = zeroblob(100) WHERE content = '" + makeKernel(2).content + "'",
       "kernel " + makeKernel(2).content + ": its digest does not match"},
      {"UPDATE kernels SET binary_bytes = 1", "its digest does not match, and 4 more"},
  };
  for (const auto &[change, reason] : changes) {
    SCOPED_TRACE(change);
    writeFile(packPath, good);
    runSql(packPath, change);
    EXPECT_NE(openPack(rules), nullptr) << "an engine looks at what it needs";
    for (const SignatureRules &each : {rules, SignatureRules{}}) {
      const Result<CacheFile> source = openSource(packPath, each, Databases::kAccepted);
      ASSERT_FALSE(source);
      EXPECT_NE(source.status().toString().find(reason), std::string::npos) << source.status().toString();
    }
    EXPECT_FALSE(signPack(packPath, SecretKey::generate()).isOk());
  }
}

TEST_F(SignatureTest, ADatabaseHasNoSignature) {
  fill({1}, path);
  EXPECT_TRUE(openSource(path, {}, Databases::kAccepted));
  const Result<CacheFile> refused = openSource(path, {}, Databases::kRefused);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.status().toString().find("database '" + path + "' is not used: a signature is required"),
            std::string::npos);
  EXPECT_NE(signPack(path, SecretKey::generate()).toString().find("it is no pack"), std::string::npos);
}

TEST_F(SignatureTest, WhatIsTamperedWithIsNotSigned) {
  makePack();
  const SecretKey key = SecretKey::generate();
  const std::string good = readFile(packPath);
  for (const char *change : {"UPDATE choices SET tuned = 0", "UPDATE evidence SET milliseconds = 0.1",
                             "UPDATE kernels SET binary = zeroblob(100)"}) {
    writeFile(packPath, good);
    runSql(packPath, change);
    const std::string before = readFile(packPath);
    EXPECT_FALSE(signPack(packPath, key).isOk()) << change;
    EXPECT_TRUE(readFile(packPath) == before);
  }
  for (const std::string &name : scratch.list())
    EXPECT_EQ(name.find("nsapack."), std::string::npos) << name << " was left behind";
}

} // namespace
} // namespace nsa
