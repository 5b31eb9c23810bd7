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

} // namespace
} // namespace nsa::tools
