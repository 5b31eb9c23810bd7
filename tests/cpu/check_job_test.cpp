// `nsa run --check` of inputs that are not finite: rows that they reach are named, and all others judged.
#include "tests/cpu/program_job.h"
#include "tools/nsa/files/safetensors.h"

#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

namespace nsa::tools {
namespace {

class CheckJob : public ProgramJob {
protected:
  // The trained model's tensors with one element of another value, each as bf16.
  std::string inputsWith(const std::string &name, int64_t element, uint16_t bits) {
    const Result<SafetensorsFile> file = SafetensorsFile::open(input);
    EXPECT_TRUE(file) << file.status().toString();
    std::vector<HostTensor> tensors;
    std::vector<std::pair<std::string, const HostTensor *>> list;
    tensors.reserve(file->entries().size());
    for (const auto &[entry, unused] : file->entries()) {
      tensors.push_back(*file->read(entry));
      if (entry == name)
        std::memcpy(tensors.back().bytes.data() + element * 2, &bits, sizeof bits);
      list.emplace_back(entry, &tensors.back());
    }
    const std::string path = scratch.file("changed.safetensors");
    EXPECT_TRUE(writeSafetensors(OutputFile::create(path), list).isOk());
    return path;
  }
  std::string errorOf(const std::string &changed, const std::string &options = "") {
    run("run --op window --config " + data + "/window.json --input " + changed + " --output " + output +
            " --device cpu --cache " + database + " --check " + options,
        1);
    return test::readFile(scratch.file("stderr"));
  }

  static constexpr uint16_t kNan = 0x7fc0, kInfinity = 0x7f80; // bf16
  static constexpr int64_t kLast = 2047, kHeads = 8, kDim = 64;
};

TEST_F(CheckJob, RowsThatCannotBeJudgedAreNamed) {
  const std::string nan = inputsWith("q", (kLast * kHeads + 3) * kDim + 5, kNan);
  std::string error = errorOf(nan);
  EXPECT_EQ(error.find("internal"), std::string::npos) << error;
  for (const std::string part : {"invalid argument", "--input", nan.c_str(),
                                 "the reference is not finite there: 2, the first at query "
                                 "2047 head 3",
                                 "every other row is right"})
    EXPECT_NE(error.find(part), std::string::npos) << part << "\n" << error;
  EXPECT_FALSE(std::filesystem::exists(output));

  // The two last queries see the last token but one, with all their heads; weights are finite.
  error = errorOf(inputsWith("v_win", (kLast - 1) * kDim, kInfinity));
  EXPECT_NE(error.find("not finite there: 16, the first at query 2046 head 0"), std::string::npos) << error;
}

TEST_F(CheckJob, WithoutTheCheckTheOutputIsWritten) {
  run("run --op window --config " + data + "/window.json --input " +
      inputsWith("q", (kLast * kHeads + 3) * kDim + 5, kNan) + " --output " + output + " --device cpu --cache " +
      database);
  EXPECT_TRUE(std::filesystem::exists(output));
}

} // namespace
} // namespace nsa::tools
