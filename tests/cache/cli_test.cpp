// `nsa cache` as a user meets it: every verb on real files, what it prints, and what it refuses.
#include "tests/cache/pack_fixture.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/wait.h>

namespace nsa {
namespace {

struct Outcome {
  int code = -1;
  std::string out, err;
};

class CacheVerbs : public PackTest {
protected:
  // `environment`: "NAME=value ...".
  Outcome run(const std::string &arguments, const std::string &environment = "") {
    return runProgram("cache " + arguments, environment);
  }
  Outcome runProgram(const std::string &arguments, const std::string &environment) {
    const std::string command = "env -u NSA_CACHE_DIR XDG_CACHE_HOME=" + scratch.file("xdg") + " " + environment +
                                " '" NSA_PROGRAM "' " + arguments + " >" + scratch.file("stdout") + " 2>" +
                                scratch.file("stderr");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, readFile(scratch.file("stdout")),
            readFile(scratch.file("stderr"))};
  }
  nlohmann::json report(const std::string &arguments, int code = 0) {
    const Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.err, "") << arguments;
    nlohmann::json json = nlohmann::json::parse(outcome.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << outcome.out;
    return json;
  }
  void expectFailure(const std::string &arguments, const std::string &reason, int code = 1) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(reason), std::string::npos) << arguments << "\n" << outcome.err;
  }
  std::string at(const std::string &file) const { return " --cache " + file; }
};

// A file of others may hold what moves a terminal's cursor.
TEST_F(CacheVerbs, NoControlCharactersOfAFileArePrinted) {
  StoredChoice choice = makeChoice(1, true);
  choice.device = "gpu\x1b[2J\x1b]0;title\x07";
  choice.provenance = "made\x9b by\x7f";
  ASSERT_TRUE(openStore()->put(makeKernel(1), &choice).isOk());
  ASSERT_TRUE(openStore()->put(makeKernel(2), nullptr).isOk());
  const std::string kernel = makeKernel(1).content.substr(0, 12);
  for (const std::string &arguments :
       {"list" + at(path), "show " + kernel + at(path), "stats" + at(path), "gc" + at(path)}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << outcome.err;
    for (const char control : {'\x1b', '\x07', '\x7f'})
      EXPECT_EQ((outcome.out + outcome.err).find(control), std::string::npos) << arguments;
  }
  EXPECT_NE(run("list" + at(path)).out.find("gpu\\x1b[2J\\x1b]0;title\\x07"), std::string::npos);
}

// A path is a text of others too: a shell's pattern may have found it. On stderr as well.
TEST_F(CacheVerbs, NoControlCharactersOfAPathArePrinted) {
  fill({1}, path);
  const std::string folder = scratch.file("bad\x1b[2Jname"), pack = "'" + folder + "/k.nsapack'";
  std::filesystem::create_directory(folder);
  ASSERT_EQ(run("export " + pack + at(path)).code, 0);
  ASSERT_EQ(run("keygen " + scratch.file("k")).code, 0);
  const auto expectPrintable = [&](const std::string &arguments, const std::string &environment, int code) {
    const Outcome outcome = runProgram(arguments, environment);
    EXPECT_EQ(outcome.code, code) << arguments;
    EXPECT_EQ((outcome.out + outcome.err).find('\x1b'), std::string::npos) << arguments;
    EXPECT_NE(outcome.err.find("\\x1b[2J"), std::string::npos) << arguments << "\n" << outcome.err;
  };
  const std::string keys = "NSA_CACHE_KEYS=" + scratch.file("k.public");
  expectPrintable("cache export " + scratch.file("copy.nsapack") + at(pack), keys, 0); // a warning
  expectPrintable("cache export " + scratch.file("copy.nsapack") + at(pack), keys + " NSA_REQUIRE_SIGNATURE=1", 1);
  expectPrintable(pack, "", 2);
  expectPrintable("cache export " + pack + " --none " + pack, "", 2);
}

TEST_F(CacheVerbs, ExportSignVerifyAndLook) {
  fill({1, 2}, path);
  nlohmann::json json = report("export " + packPath + at(path));
  EXPECT_EQ(json["kernels"], 2);
  EXPECT_EQ(json["choices"], 2);
  EXPECT_EQ(json["routes"], 2);
  EXPECT_EQ(json["damaged"], nlohmann::json::array());
  EXPECT_EQ(json["digest"].get<std::string>().size(), 64u);
  EXPECT_NE(run("export " + scratch.file("b.nsapack") + at(path)).out.find("2 kernels, 2 choices, 2 routes"),
            std::string::npos);
  EXPECT_TRUE(readFile(packPath) == readFile(scratch.file("b.nsapack")));

  const std::string name = scratch.file("release");
  json = report("keygen " + name);
  const std::string key = json["key"];
  struct stat facts{};
  ASSERT_EQ(stat((name + ".secret").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  EXPECT_EQ(readFile(name + ".public"), "nsa-public-key-1 " + key + "\n");
  EXPECT_EQ(run("verify " + packPath).code, 0);
  expectFailure("verify --key " + name + ".public " + packPath, "verification failed: 1 finding");
  EXPECT_EQ(report("sign " + packPath + " --key " + name + ".secret")["key"], key);
  json = report("verify --require-signature --key " + name + ".public " + packPath);
  EXPECT_EQ(json["files"][0]["signers"], nlohmann::json::array({key}));
  EXPECT_EQ(json["files"][0]["findings"], nlohmann::json::array());

  EXPECT_EQ(report("export --op window --op dense " + scratch.file("c.nsapack") + at(path))["kernels"], 2);
  json = report("list" + at(packPath));
  EXPECT_EQ(json["kernels"].size(), 2u);
  EXPECT_EQ(json["choices"].size(), 2u);
  EXPECT_EQ(json["routes"].size(), 2u);
  EXPECT_EQ(json["routes"][0]["threshold"], 4096);
  EXPECT_EQ(json["routes"][0]["evidence"][1]["variant"], "attention");
  EXPECT_EQ(report("show " + makeKernel(1).content + at(packPath))["choices"].size(), 1u);
  json = report("stats" + at(packPath));
  EXPECT_EQ(json["kind"], "pack");
  EXPECT_EQ(json["tuned_share"], 1.0);
  EXPECT_TRUE(json["source"].is_string());
  EXPECT_TRUE(json["last_use"].is_null());
  EXPECT_TRUE(report("stats" + at(path))["last_use"].is_string());
  EXPECT_NE(run("list" + at(path)).out.find("window.attention_from from 4096"), std::string::npos);
}

// The database outranks every pack, so what may be merged is what may run.
TEST_F(CacheVerbs, APolicyIsForWhatIsTakenToo) {
  fill({1, 2}, path);
  const std::string into = scratch.file("new/kernels.db"), copy = scratch.file("copy.nsapack");
  const std::string ours = scratch.file("ours"), theirs = scratch.file("theirs");
  ASSERT_EQ(run("export " + packPath + at(path)).code, 0);
  ASSERT_EQ(run("keygen " + ours).code, 0);
  ASSERT_EQ(run("keygen " + theirs).code, 0);
  const std::string keys = "NSA_CACHE_KEYS=" + ours + ".public ", strict = "NSA_REQUIRE_SIGNATURE=1 " + keys;
  const auto expectRefused = [&](const std::string &reason) {
    const std::string key = " --key " + ours + ".public";
    for (const std::string &verb : {"merge " + packPath + at(into), "export " + copy + at(packPath)})
      for (const auto &[flags, environment] : {std::pair(std::string(), strict), std::pair(key, std::string())}) {
        const Outcome outcome = run(verb + flags, environment);
        EXPECT_EQ(outcome.code, 1) << verb << flags;
        EXPECT_NE(outcome.err.find(reason), std::string::npos) << verb << flags << "\n" << outcome.err;
      }
    EXPECT_EQ(run("verify " + packPath, strict).code, 1);
    EXPECT_EQ(run("verify " + packPath + key).code, 1);
    EXPECT_FALSE(std::filesystem::exists(into));
    EXPECT_FALSE(std::filesystem::exists(copy));
  };
  expectRefused("it is not signed");
  ASSERT_EQ(run("sign " + packPath + " --key " + theirs + ".secret").code, 0);
  expectRefused("none of the keys that signed it is trusted");

  // Keys without the requirement are a warning on stderr.
  const std::string other = scratch.file("other.db");
  const Outcome warned = run("merge " + packPath + at(other), keys);
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_NE(warned.err.find("is used although none of the trusted keys has signed it"), std::string::npos);
  EXPECT_EQ(run("merge " + packPath + at(other)).err, "");

  // Signed, then changed with its digest made anew: whatever is asked.
  ASSERT_EQ(run("sign " + packPath + " --key " + ours + ".secret").code, 0);
  const std::string good = readFile(packPath);
  runSql(packPath, "UPDATE pack SET value = zeroblob(64) WHERE key LIKE 'signature %'");
  expectRefused("its signature is not that of its digest");
  for (const std::string &verb : {"merge " + packPath + at(into), "export " + copy + at(packPath),
                                  "list" + at(packPath), "sign " + packPath + " --key " + ours + ".secret"})
    expectFailure(verb, "its signature is not that of its digest");
  // A binary that an engine would skip.
  writeFile(packPath, good);
  runSql(packPath, "UPDATE kernels SET binary = zeroblob(10)");
  expectRefused("its digest does not match");

  writeFile(packPath, good);
  EXPECT_EQ(run("export " + copy + at(packPath), strict).code, 0);
  EXPECT_EQ(run("export --force " + copy + at(packPath) + " --key " + ours + ".public").code, 0);
  EXPECT_EQ(run("verify " + packPath, strict).code, 0);
  EXPECT_EQ(run("merge " + packPath + at(into), strict).code, 0);
  EXPECT_EQ(run("merge " + packPath + at(into) + " --key " + theirs + ".public --key " + ours + ".public").code, 0);
  EXPECT_EQ(report("list" + at(into))["choices"].size(), 2u);

  // A database has no signature. It is no source under the policy; the one that is named with --cache is the own.
  const Outcome unsignable = run("merge " + path + at(into), strict);
  EXPECT_EQ(unsignable.code, 1);
  EXPECT_NE(unsignable.err.find("a signature is required, and only packs are signed"), std::string::npos)
      << unsignable.err;
  EXPECT_EQ(run("export --force " + copy + at(path), strict).code, 0);
  EXPECT_EQ(run("verify " + path, strict).code, 0);
  expectFailure("export --force " + copy + at(path) + " --key " + ours + ".public", "only packs are signed");
  expectFailure("merge " + packPath + at(into) + " --key " + scratch.file("none"), "key file '" + scratch.file("none"));
}

TEST_F(CacheVerbs, TheShippedPackSatisfiesThePolicyWithItsKey) {
  const std::string shipped = NSA_SHIPPED_PACKS "/nvidia-h200", pack = shipped + ".nsapack",
                    into = scratch.file("i.db");
  const std::string strict = "NSA_REQUIRE_SIGNATURE=1 NSA_CACHE_KEYS=" + shipped + ".public NSA_CACHE_PACKS=" + pack;
  for (const std::string &verb : {"verify " + pack, "merge " + pack + at(into), "export " + packPath + at(pack)}) {
    const Outcome outcome = run(verb, strict);
    EXPECT_EQ(outcome.code, 0) << verb << "\n" << outcome.err;
    EXPECT_EQ(outcome.err, "") << verb;
  }
  const std::string kernels = std::to_string(report("stats" + at(pack))["kernels"].get<int>());
  EXPECT_EQ(report("stats" + at(into))["kernels"].dump(), kernels);
  EXPECT_EQ(report("stats" + at(packPath))["kernels"].dump(), kernels);
  const Outcome doctor = runProgram("doctor", strict);
  EXPECT_NE(doctor.out.find("ok    " + pack + ", " + kernels + " kernels\n"), std::string::npos) << doctor.out;
  // Under another key it is refused.
  ASSERT_EQ(run("keygen " + scratch.file("k")).code, 0);
  const std::string other = "NSA_REQUIRE_SIGNATURE=1 NSA_CACHE_KEYS=" + scratch.file("k.public");
  EXPECT_EQ(run("merge " + pack + at(scratch.file("j.db")), other).code, 1);
  EXPECT_FALSE(std::filesystem::exists(scratch.file("j.db")));
}

TEST_F(CacheVerbs, MergeAndDiff) {
  const std::string other = scratch.file("other.db"), into = scratch.file("new/kernels.db");
  fill({1, 2}, path);
  fill({2, 3}, other);
  EXPECT_FALSE(report("diff " + path + " " + other, 1)["same"]);
  const nlohmann::json json = report("merge " + path + " " + other + at(into));
  EXPECT_EQ(json["sources"].size(), 2u);
  EXPECT_EQ(json["sources"][1]["choices"]["added"], 1);
  EXPECT_EQ(json["sources"][1]["choices"]["kept"], 1);
  EXPECT_EQ(report("list" + at(into))["choices"].size(), 3u);
  const nlohmann::json diff = report("diff " + path + " " + into, 1);
  EXPECT_EQ(diff["choices"]["only_second"].size(), 1u);
  EXPECT_TRUE(report("diff " + into + " " + into)["same"]);
  const Outcome differ = run("diff " + path + " " + into), same = run("diff " + into + " " + into);
  EXPECT_NE(differ.out.find("+ choice window dtype=bf16 | problem=3"), std::string::npos);
  EXPECT_EQ(differ.code, 1) << "as diff";
  EXPECT_EQ(differ.err, "") << "to differ is no error";
  EXPECT_EQ(same.code, 0);
  expectFailure("diff " + path + " " + scratch.file("none"), "none'", 2);
  expectFailure("diff " + scratch.write("text", "not a database") + " " + path, "text'", 2);
  expectFailure("merge " + path + " " + scratch.file("none") + at(into), "none'");
  expectFailure("merge " + path + " --cache :memory:", "keeps nothing");
  expectFailure("merge " + path + at(path), "must not be the database that it is merged into");
  expectFailure("merge " + path + " --prefer me", "--prefer", 2);
}

TEST_F(CacheVerbs, Collect) {
  fill({1, 2}, path);
  ASSERT_TRUE(openStore()->put(makeKernel(9), nullptr).isOk());
  nlohmann::json json = report("gc --dry-run" + at(path));
  EXPECT_EQ(json["removed"].size(), 1u);
  EXPECT_TRUE(json["dry_run"]);
  EXPECT_EQ(report("list" + at(path))["kernels"].size(), 3u);
  const Outcome text = run("gc" + at(path));
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("no choice names it"), std::string::npos) << text.out;
  EXPECT_EQ(report("list" + at(path))["kernels"].size(), 2u);
  json = report("gc --max-bytes 20KB" + at(path));
  EXPECT_FALSE(json["within_limit"]);
  EXPECT_EQ(json["removed"].size(), 0u);
  EXPECT_NE(run("gc --max-bytes 20KB" + at(path)).out.find("tuned kernels stay (--tuned removes them too)"),
            std::string::npos);
  EXPECT_EQ(report("gc --max-bytes 20KB --tuned" + at(path))["removed_choices"], 2);
  expectFailure("gc --older-than-days -1" + at(path), "--older-than-days", 2);
  expectFailure("gc" + at(scratch.file("none.db")), "there is no kernel database or pack at");
}

TEST_F(CacheVerbs, ADryRunChangesNothing) {
  fill({1}, path);
  ASSERT_EQ(run("export " + packPath + at(path)).code, 0);
  expectFailure("gc" + at(packPath), "is a pack, which never changes");
  // Of an older schema.
  sql("DROP TABLE route_evidence; DROP TABLE routes; DROP TABLE uses");
  sql("PRAGMA user_version = 2; PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string before = readFile(path);
  EXPECT_EQ(report("gc --dry-run" + at(path))["removed"].size(), 0u);
  EXPECT_TRUE(readFile(path) == before);
}

// An empty file in its place would be the loss of all that it held, reported as "0 kernels".
TEST_F(CacheVerbs, ADamagedDatabaseIsNotCollected) {
  const std::string other = scratch.file("other.db"), damaged = damagedDatabase(20000);
  fill({1}, other);
  writeFile(path, damaged);
  expectFailure("gc --dry-run" + at(path), "it is damaged");
  expectFailure("gc" + at(path), "it is damaged");
  EXPECT_TRUE(readFile(path) == damaged);
  const Outcome merged = run("merge " + other + at(path));
  EXPECT_EQ(merged.code, 0);
  EXPECT_NE(merged.err.find("it is damaged; it was renamed to"), std::string::npos) << merged.err;
}

// A torn copy, or a database whose maker was killed: it can be looked at, and nothing is claimed or made of it.
TEST_F(CacheVerbs, AnEmptyDatabaseIsOnlyLookedAt) {
  const std::string into = scratch.file("into.db");
  writeFile(path, "");
  EXPECT_EQ(report("list" + at(path))["kernels"].size(), 0u);
  const nlohmann::json stats = report("stats" + at(path));
  EXPECT_EQ(stats["kernels"], 0);
  EXPECT_EQ(stats["file_bytes"], 0);
  EXPECT_EQ(stats["used_bytes"], 0);
  const Outcome verified = run("verify " + path);
  EXPECT_EQ(verified.code, 1);
  EXPECT_NE(verified.out.find("holds nothing yet"), std::string::npos) << verified.out;
  for (const std::string &verb :
       {"export " + packPath + at(path), "merge " + path + at(into), "gc" + at(path), "gc --dry-run" + at(path)})
    expectFailure(verb, "holds nothing yet");
  expectFailure("diff " + path + " " + path, "holds nothing yet", 2);
  EXPECT_EQ(readFile(path), "");
  EXPECT_FALSE(std::filesystem::exists(into));
  EXPECT_FALSE(std::filesystem::exists(packPath));
}

TEST_F(CacheVerbs, ExportSaysHowManyKernelsItLeavesOut) {
  fill({1, 2, 3}, path);
  EXPECT_EQ(run("export " + packPath + at(path)).out.find("left out"), std::string::npos);
  runSql(path, "DELETE FROM choices WHERE content = '" + makeKernel(3).content + "'");
  const Outcome one = run("export --force " + packPath + at(path));
  EXPECT_NE(one.out.find("\nleft out: 1 kernel that no choice in the pack names\n"), std::string::npos) << one.out;
  EXPECT_EQ(report("export --force " + packPath + at(path))["left_out"], 1);
  // A filter leaves out kernels too. A damaged kernel has a line of its own.
  runSql(path, "UPDATE kernels SET digest = zeroblob(32) WHERE content = '" + makeKernel(2).content + "'");
  const Outcome damaged = run("export --force " + packPath + at(path));
  EXPECT_NE(damaged.out.find("left out: 1 kernel that no"), std::string::npos) << damaged.out;
  EXPECT_NE(damaged.out.find("left out: kernel " + makeKernel(2).content + ", which is damaged"), std::string::npos)
      << damaged.out;
}

TEST_F(CacheVerbs, Refuses) {
  fill({1}, path);
  expectFailure("export " + scratch.file("pack.db") + at(path),
                "PACK = " + scratch.file("pack.db") + ": must end in .nsapack");
  expectFailure("export " + packPath + " --device tpu" + at(path), "a pack would be empty");
  ASSERT_EQ(run("export " + packPath + at(path)).code, 0);
  expectFailure("export " + packPath + at(path), "exists already (hint: name another file, or --force)");
  EXPECT_EQ(run("export --force " + packPath + at(path)).code, 0);
  expectFailure("export " + scratch.file("no/k.nsapack") + at(path), "cannot be made: No such file or directory");
  const std::string name = scratch.file("k");
  ASSERT_EQ(run("keygen " + name).code, 0);
  const std::string secret = readFile(name + ".secret");
  expectFailure("keygen " + name, "a key is never overwritten");
  EXPECT_EQ(readFile(name + ".secret"), secret);
  expectFailure("sign " + packPath + " --key " + name + ".public", "others than its owner may open it");
  expectFailure("sign " + path + " --key " + name + ".secret", "it is no pack");
  expectFailure("verify " + scratch.file("none"), "verification failed: 1 finding");
  runSql(packPath, "UPDATE choices SET tuned = 0");
  const Outcome tampered = run("verify " + packPath);
  EXPECT_EQ(tampered.code, 1);
  EXPECT_NE(tampered.out.find("the digest is not that of the rows"), std::string::npos) << tampered.out;
  expectFailure("list" + at(packPath), "its digest is not that of its rows");
  expectFailure("diff " + path, "SECOND is required", 2);
}

} // namespace
} // namespace nsa
