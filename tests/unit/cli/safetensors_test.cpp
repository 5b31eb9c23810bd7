// The safetensors reader against every way in which a file can be wrong, and the writer's promise that a
// file is complete or not there.
#include "tests/harness/scratch.h"
#include "tools/nsa/files/safetensors.h"

#include <csignal>
#include <cstring>
#include <sys/resource.h>

namespace nsa::tools {
namespace {

using test::Scratch;

std::string fileOf(const std::string &header, const std::string &data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char *>(&length), 8) + header + data;
}

struct Malformed {
  const char *name;
  std::string content;
  const char *reason; // a part of the error
};

class MalformedFile : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedFile, IsAClearError) {
  const Scratch scratch;
  const std::string path = scratch.write("x.safetensors", GetParam().content);
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_FALSE(file);
  const std::string text = file.status().toString();
  EXPECT_NE(text.find(GetParam().reason), std::string::npos) << text;
  EXPECT_NE(text.find("x.safetensors"), std::string::npos) << "does not name the file: " << text;
}

std::string lengthOnly(uint64_t length) { return std::string(reinterpret_cast<const char *>(&length), 8); }

std::vector<Malformed> malformedFiles() {
  const std::string four(4, 'x'), eight(8, 'x');
  return {
      {"Empty", "", "has 0 bytes"},
      {"ShorterThanTheLength", "abc", "has 3 bytes"},
      {"HeaderLongerThanTheFile", lengthOnly(64) + "{}", "is it truncated"},
      {"HeaderAboveTheLimit", lengthOnly(100'000'001) + "{}", "the format allows"},
      {"HeaderLengthOverflows", lengthOnly(UINT64_MAX) + "{}", "the format allows"},
      {"NoJson", fileOf("not json", ""), "not valid JSON"},
      {"CutJson", fileOf(R"({"a": {"dtype": "F32")", ""), "not valid JSON"},
      {"JsonArray", fileOf("[]", ""), "must be a JSON object"},
      {"EmptyHeader", fileOf("", ""), "not valid JSON"},
      {"DeepNesting", fileOf(R"({"a": )" + std::string(100000, '['), ""), "nested deeper"},
      {"RepeatedTensor",
       fileOf(
           R"({"a": {"dtype":"F32","shape":[1],"data_offsets":[0,4]}, "a": {"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
           eight),
       "stands there twice"},
      {"RepeatedKey", fileOf(R"({"a": {"dtype":"F32","dtype":"F16","shape":[1],"data_offsets":[0,4]}})", four),
       "stands there twice"},
      {"TensorIsNoObject", fileOf(R"({"a": 3})", ""), "must be an object"},
      {"UnknownKey", fileOf(R"({"a": {"dtype":"F32","shape":[1],"data_offsets":[0,4],"order":"C"}})", four),
       "unknown key \"order\""},
      {"NoDtype", fileOf(R"({"a": {"shape":[1],"data_offsets":[0,4]}})", four), "lacks dtype"},
      {"NoShape", fileOf(R"({"a": {"dtype":"F32","data_offsets":[0,4]}})", four), "lacks shape"},
      {"NoOffsets", fileOf(R"({"a": {"dtype":"F32","shape":[1]}})", four), "lacks data_offsets"},
      {"DtypeIsNoString", fileOf(R"({"a": {"dtype":32,"shape":[1],"data_offsets":[0,4]}})", four),
       "dtype must be a string"},
      {"UnknownDtype", fileOf(R"({"a": {"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", four),
       "unknown dtype \"F33\""},
      {"ShapeIsNoArray", fileOf(R"({"a": {"dtype":"F32","shape":1,"data_offsets":[0,4]}})", four),
       "shape must be an array"},
      {"NegativeExtent", fileOf(R"({"a": {"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", four), "shape holds -1"},
      {"FractionalExtent", fileOf(R"({"a": {"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", four),
       "shape holds 1.5"},
      {"ShapeOverflows", fileOf(R"({"a": {"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", four),
       "more elements than memory"},
      {"ShapeOfZeroOverflows",
       fileOf(R"({"a": {"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", four),
       "more elements than memory"},
      {"OffsetsAreNoPair", fileOf(R"({"a": {"dtype":"F32","shape":[1],"data_offsets":[0]}})", four),
       "must be two integers"},
      {"NegativeOffset", fileOf(R"({"a": {"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", four),
       "must be two integers"},
      {"OffsetsReversed", fileOf(R"({"a": {"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", four),
       "end before they begin"},
      {"OffsetsLeaveTheFile", fileOf(R"({"a": {"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", four),
       "leave the file"},
      {"HugeOffsets",
       fileOf(R"({"a": {"dtype":"F32","shape":[1],"data_offsets":[18446744073709551611,18446744073709551615]}})", four),
       "leave the file"},
      {"SizeMismatch", fileOf(R"({"a": {"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", four),
       "takes 8 bytes, data_offsets give 4"},
      {"Overlap",
       fileOf(
           R"({"a": {"dtype":"F32","shape":[1],"data_offsets":[0,4]}, "b": {"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
           eight),
       "overlaps tensor \"a\""},
      {"Hole", fileOf(R"({"a": {"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight), "belong to no tensor"},
      {"BytesBehindTheLast", fileOf(R"({"a": {"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", eight),
       "4 bytes after tensor \"a\""},
  };
}

INSTANTIATE_TEST_SUITE_P(Files, MalformedFile, ::testing::ValuesIn(malformedFiles()),
                         [](const auto &info) { return info.param.name; });

TEST(Safetensors, MissingFilesAndFoldersAreErrors) {
  const Scratch scratch;
  EXPECT_NE(SafetensorsFile::open(scratch.file("absent")).status().toString().find("No such file"), std::string::npos);
  EXPECT_NE(SafetensorsFile::open(scratch.file("")).status().toString().find("not a regular file"), std::string::npos);
}

TEST(Safetensors, EveryTypeComesBackAsItWasWritten) {
  const Scratch scratch;
  std::vector<HostTensor> tensors;
  for (DType dtype : {DType::kBf16, DType::kF16, DType::kF32, DType::kI32}) {
    HostTensor tensor = HostTensor::make(dtype, {3, 5});
    for (size_t i = 0; i < tensor.bytes.size(); ++i)
      tensor.bytes[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(dtype));
    tensors.push_back(tensor);
  }
  tensors.push_back(HostTensor::make(DType::kF32, {0, 4})); // no bytes at all
  const std::string path = scratch.file("types.safetensors");
  ASSERT_TRUE(
      writeSafetensors(
          OutputFile::create(path),
          {{"b", &tensors[0]}, {"h", &tensors[1]}, {"f", &tensors[2]}, {"i", &tensors[3]}, {"none", &tensors[4]}})
          .isOk());
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.status().toString();
  const char *names[] = {"b", "h", "f", "i", "none"};
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Result<HostTensor> tensor = file->read(names[i]);
    ASSERT_TRUE(tensor) << tensor.status().toString();
    EXPECT_EQ(tensor->dtype, tensors[i].dtype);
    EXPECT_EQ(tensor->shape, tensors[i].shape);
    EXPECT_EQ(tensor->bytes, tensors[i].bytes);
  }
  EXPECT_EQ(scratch.list(), std::vector<std::string>{"types.safetensors"}) << "a temporary file was left";
}

TEST(Safetensors, MetadataAndOtherTypesDoNotDisturb) {
  const Scratch scratch;
  const std::string path = scratch.write(
      "x", fileOf(R"({"__metadata__": {"note": "hi"}, "a": {"dtype":"I64","shape":[],"data_offsets":[0,8]}})",
                  std::string(8, 'x')));
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->entries().size(), 1u);
  EXPECT_NE(file->read("a").status().toString().find("I64"), std::string::npos);
  const std::string absent = file->read("b").status().toString();
  EXPECT_NE(absent.find("no tensor \"b\""), std::string::npos) << absent;
  EXPECT_NE(absent.find("it has: a"), std::string::npos) << absent;
}

TEST(Safetensors, AnOutputThatCannotBeWrittenLeavesNothing) {
  const Scratch scratch;
  const HostTensor tensor = HostTensor::make(DType::kF32, {1 << 16});
  EXPECT_FALSE(writeSafetensors(OutputFile::create(scratch.file("absent/out")), {{"a", &tensor}}).isOk());
  EXPECT_FALSE(writeSafetensors(OutputFile::create(scratch.file("")), {{"a", &tensor}}).isOk())
      << "a folder was taken for a file";
  EXPECT_TRUE(scratch.list().empty());
}

TEST(Safetensors, ADiskThatFillsUpLeavesTheOldFile) {
  const Scratch scratch;
  const std::string path = scratch.write("out", "the old content");
  const HostTensor tensor = HostTensor::make(DType::kF32, {1 << 16});
  // A limit on file sizes fails in the middle of the write, as a full disk does.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 1 << 12;
  auto *handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const Status status = writeSafetensors(OutputFile::create(path), {{"a", &tensor}});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), ErrorCode::kIoError) << status.toString();
  EXPECT_EQ(test::readFile(path), "the old content");
  EXPECT_EQ(scratch.list(), std::vector<std::string>{"out"});
}

} // namespace
} // namespace nsa::tools
