// A pack that is made ready to be shipped, and what runs of it where a signature is required.
#include "tests/cpu/program_job.h"

#include <algorithm>

namespace nsa::tools {
namespace {

// The policy from the first compilation to a changed binary: what is shipped with its key runs, what is changed never.
TEST_F(ProgramJob, AShippedPackRunsUnderThePolicyAndAChangedOneNever) {
  run(job);
  const std::string first = test::readFile(output), pack = scratch.file("kernels.nsapack");
  run("cache export " + pack + " --cache " + database);
  const std::string ship = NSA_SHIP_PACK " " + pack + " '" NSA_PROGRAM "' >" + scratch.file("shipped");
  ASSERT_EQ(std::system(ship.c_str()), 0);
  const std::string key = scratch.file("kernels.public");
  const std::vector<std::string> files = scratch.list();
  EXPECT_TRUE(std::ranges::none_of(files, [](const std::string &name) { return name.ends_with(".secret"); }));
  run("cache verify --key " + key + " " + pack);

  const std::string strict = "NSA_REQUIRE_SIGNATURE=1 NSA_CACHE_KEYS=" + key + " NSA_CACHE_PACKS=" + pack;
  std::string packed = job + " --miss fail";
  test::replaceOnce(packed, "--cache " + database, "--cache :memory:");
  std::filesystem::remove(output);
  run(packed, 0, strict);
  EXPECT_TRUE(test::readFile(output) == first);
  EXPECT_NE(run("doctor", 0, strict).find(pack + ", 1 kernel"), std::string::npos)
      << test::readFile(scratch.file("stdout"));
  run("cache merge " + pack + " --cache " + scratch.file("merged.db"), 0, strict);
  run("cache export " + scratch.file("again.nsapack") + " --cache " + pack, 0, strict);

  // One byte of the binary, and one of the signature.
  const std::string good = test::readFile(pack), frame("\x28\xb5\x2f\xfd", 4), name = "signature ";
  std::string bytes = good;
  int frames = 0;
  for (size_t at = bytes.find(frame); at != std::string::npos; at = bytes.find(frame, at + 1), ++frames)
    bytes[at + 40] = static_cast<char>(bytes[at + 40] ^ 1);
  ASSERT_GT(frames, 0);
  std::string unsignedBytes = good;
  const size_t signature = unsignedBytes.find(name);
  ASSERT_NE(signature, std::string::npos);
  unsignedBytes[signature + name.size() + 64] ^= 1;
  for (const std::string &changed : {bytes, unsignedBytes}) {
    test::writeFile(pack, changed);
    std::filesystem::remove(output);
    run(packed, 1, strict);
    EXPECT_NE(test::readFile(scratch.file("stderr")).find("cache miss"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(output));
    run("cache merge " + pack + " --cache " + scratch.file("merged.db"), 1, strict);
    run("cache export " + scratch.file("again.nsapack") + " --force --cache " + pack, 1, strict);
    run("cache verify " + pack, 1, strict);
  }
  EXPECT_NE(std::system(("exec >/dev/null 2>&1; " + ship).c_str()), 0) << "what is damaged is not shipped";
  EXPECT_TRUE(test::readFile(pack) == unsignedBytes);
}

// Beside its key a pack is shipped again when that key has signed it. Its signature may have been taken off together
// with a change, or replaced: only --unsigned says that the pack is a fresh export.
TEST_F(ProgramJob, APackThatLostItsSignatureIsNotShippedAgain) {
  run(job);
  const std::string pack = scratch.file("kernels.nsapack"), key = scratch.file("kernels.public");
  const std::string strict = "NSA_REQUIRE_SIGNATURE=1 NSA_CACHE_KEYS=" + key;
  const auto ship = [&](const std::string &flags) {
    const std::string command = NSA_SHIP_PACK " " + flags + pack + " '" NSA_PROGRAM "' >" + scratch.file("shipped") +
                                " 2>" + scratch.file("stderr");
    return std::system(command.c_str()) == 0;
  };
  run("cache export " + pack + " --cache " + database);
  const std::string stripped = test::readFile(pack);
  EXPECT_TRUE(ship("")) << "without a key beside it: " << test::readFile(scratch.file("stderr"));
  EXPECT_TRUE(ship("")) << "signed by the key beside it: " << test::readFile(scratch.file("stderr"));
  run("cache verify " + pack, 0, strict);

  const std::string vouched = test::readFile(key);
  run("cache keygen " + scratch.file("another"));
  for (const bool isSigned : {false, true}) {
    test::writeFile(pack, stripped);
    if (isSigned)
      run("cache sign " + pack + " --key " + scratch.file("another.secret"));
    const std::string before = test::readFile(pack);
    EXPECT_FALSE(ship(""));
    EXPECT_NE(test::readFile(scratch.file("stderr")).find("sign"), std::string::npos);
    EXPECT_NE(test::readFile(scratch.file("stderr")).find("--unsigned"), std::string::npos);
    EXPECT_EQ(test::readFile(key), vouched);
    EXPECT_TRUE(test::readFile(pack) == before);
  }
  test::writeFile(pack, stripped);
  EXPECT_TRUE(ship("--unsigned ")) << test::readFile(scratch.file("stderr"));
  EXPECT_NE(test::readFile(key), vouched);
  run("cache verify " + pack, 0, strict);
  EXPECT_FALSE(ship("--unsinged ")) << "an unknown flag";
}

// Wherever rows of packs are taken: a key file that is not trusted ends the program where a signature is required, and
// is a warning elsewhere, and then the other key counts.
TEST_F(ProgramJob, AKeyThatIsNotTrustedMeansTheSameEverywhere) {
  run(job);
  const std::string pack = scratch.file("kernels.nsapack"), good = scratch.file("good.public");
  const std::string untrusted = scratch.write("open.public", "everyone may write it");
  std::filesystem::permissions(untrusted, std::filesystem::perms(0666));
  run("cache export " + pack + " --cache " + database);
  run("cache keygen " + scratch.file("good"));
  run("cache sign " + pack + " --key " + scratch.file("good.secret"));
  std::string packed = job + " --miss fail";
  test::replaceOnce(packed, "--cache " + database, "--cache :memory:");
  struct Taker {
    std::string name, arguments, environment;
  };
  const Taker takers[] = {{"engine", packed, "NSA_CACHE_PACKS=" + pack},
                          {"pin", packed, "NSA_CACHE_PACKS=none NSA_PIN=" + pack},
                          {"doctor", "doctor", "NSA_CACHE_PACKS=" + pack},
                          {"merge", "cache merge " + pack + " --cache " + scratch.file("merged.db"), ""}};
  for (const Taker &taker : takers)
    for (const std::string &keys : {good, good + ":" + untrusted, untrusted + ":" + good})
      for (const bool isRequired : {false, true}) {
        SCOPED_TRACE(taker.name + " with " + keys + (isRequired ? ", required" : ""));
        const bool isUntrusted = keys != good;
        const std::string text =
            run(taker.arguments, isUntrusted && isRequired ? 1 : 0,
                taker.environment + " NSA_CACHE_KEYS=" + keys + (isRequired ? " NSA_REQUIRE_SIGNATURE=1" : "")) +
            test::readFile(scratch.file("stderr"));
        EXPECT_EQ(text.find(untrusted + "' is not used") != std::string::npos, isUntrusted) << text;
        EXPECT_EQ(text.find("none of the trusted keys has signed it"), std::string::npos) << text;
      }
}

} // namespace
} // namespace nsa::tools
