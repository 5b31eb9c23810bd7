// The inputs of a program of one's own from a file: names, dimensions, and the scalars that shapes say.
#include "tests/unit/cli/tensor_files.h"
#include "tools/nsa/files/program_file.h"

#include <gtest/gtest.h>

namespace nsa::tools {
namespace {

constexpr const char *kProgram = R"(kernel own

fixed   columns
choice  row_tile = 16 | 32
grid    tile = ceildiv(rows * groups, row_tile), 1, 1
threads 32

axis    row = row_tile, column = 32
tensor  x[row: rows * groups; place: columns], y[row: rows * groups; place: columns]
tensor  bias[row: rows; place: columns] optional, lengths[group: groups]: i32, state[row: rows]: f32 inout
tensor  sums[row: rows]: f32 optional
scalar  rows, groups: i32, scale: f32
work    flops = 2 * rows * groups * columns

let at = tile * row_tile + iota(row) below rows
for place in 0 .. columns by column {
  store y[at; place] = load x[at; place]
}
store state[at] = load state[at]
store sums[at] = load state[at]
)";

class ProgramFile : public testing::Test {
protected:
  Result<ProgramInputs> read(const Tensors &tensors) {
    std::vector<std::pair<std::string, const HostTensor *>> list;
    for (const auto &[name, value] : tensors)
      list.emplace_back(name, &value);
    EXPECT_TRUE(writeSafetensors(OutputFile::create(scratch.file("t")), list).isOk());
    const Result<SafetensorsFile> file = SafetensorsFile::open(scratch.file("t"));
    EXPECT_TRUE(file);
    const Result<ProgramSource::Pointer> source = ProgramSource::of("own", kProgram);
    EXPECT_TRUE(source) << source.status().toString();
    return readProgramFile(**source, values, *file);
  }
  std::string refusal(const Tensors &tensors) {
    const Result<ProgramInputs> inputs = read(tensors);
    return inputs ? "" : inputs.status().toString();
  }

  test::Scratch scratch;
  ProgramValues values = {{"columns", "50"}, {"dtype", "bf16"}};
  const Tensors good = {{"x", tensor({60, 50})},
                        {"lengths", lengths({1, 2, 3})},
                        {"state", tensor({20}, DType::kF32)},
                        {"unread", tensor({7})}};
};

TEST_F(ProgramFile, ShapesSayScalars) {
  const Result<ProgramInputs> inputs = read(good);
  ASSERT_TRUE(inputs) << inputs.status().toString();
  EXPECT_EQ(values.at("rows"), "20");
  EXPECT_EQ(values.at("groups"), "3");
  EXPECT_EQ(inputs->toString(), "own columns=50 dtype=bf16 rows=20 groups=3, lengths [3], state [20], x [60, 50]");
  EXPECT_EQ(outputsOf(*inputs, false), (std::set<std::string>{"y", "state"}));
  EXPECT_EQ(outputsOf(*inputs, true), (std::set<std::string>{"y", "state", "sums"}));
  ASSERT_TRUE(inputs->interface->work().flops);
  EXPECT_EQ(*inputs->interface->work().flops->evaluate(inputs->scalars), 2 * 20 * 3 * 50);
  EXPECT_FALSE(inputs->interface->work().bytes);
  // What no shape says has to be given.
  EXPECT_EQ(inputs->check(outputsOf(*inputs, true)).toString(),
            "invalid argument: program own: scale = absent: must be given, because no dimension of a bound tensor is "
            "'scale'");
  values["scale"] = "0.5";
  const Result<ProgramInputs> whole = read(with(good, "bias", tensor({20, 50})));
  ASSERT_TRUE(whole) << whole.status().toString();
  EXPECT_TRUE(whole->check(outputsOf(*whole, true)).isOk());
  EXPECT_EQ(read(with(good, "bias", tensor({21, 50})))->check({"y", "state"}).toString(),
            "invalid argument: program own: bias.shape = [21, 50]: dimension 0 must be 20 ('row: rows')");
}

TEST_F(ProgramFile, TensorsThatAreNotReadAreNamed) {
  const auto unused = [&](const Tensors &tensors) {
    const Result<ProgramInputs> inputs = read(tensors);
    EXPECT_TRUE(inputs) << inputs.status().toString();
    return unusedTensors(*inputs, *SafetensorsFile::open(scratch.file("t")));
  };
  EXPECT_EQ(unused(good), std::vector<std::string>{"unread"});
  EXPECT_EQ(unused(without(good, "unread")), std::vector<std::string>());
  EXPECT_EQ(unused(with(with(good, "another", tensor({1})), "bais", tensor({20, 50}))),
            (std::vector<std::string>{"bais (did you mean 'bias'?)", "another", "unread"}));
  EXPECT_EQ(unused(with(with(good, "bais", tensor({1})), "bias", tensor({20, 50}))),
            (std::vector<std::string>{"bais", "unread"}));
}

TEST_F(ProgramFile, TensorsThatAreWrongAreNamed) {
  EXPECT_EQ(refusal(without(good, "x")),
            "invalid argument: " + scratch.file("t") + " has no tensor \"x\" (hint: it has: lengths, state, unread)");
  EXPECT_EQ(
      refusal(with(good, "x", tensor({60, 5, 10}))),
      "invalid argument: tensor x = [60, 5, 10]: must have the 2 dimensions [row: rows * groups, place: columns]");
  EXPECT_EQ(refusal(with(good, "bias", tensor({50}))),
            "invalid argument: tensor bias = [50]: must have the 2 dimensions [row: rows, place: columns]");
  values.erase("columns");
  EXPECT_EQ(refusal(good), "invalid argument: columns = nothing: the program own needs a value for 'columns' (hint: it "
                           "declares 'fixed columns'; add it to the values, or to the command line as --set "
                           "columns=NUMBER)");
}

TEST_F(ProgramFile, SizesThatNoTensorHasAreNamed) {
  const auto refused = [](const std::string &tensor, const std::string &rows) {
    std::string text = kProgram;
    test::replaceOnce(text, "x[row: rows * groups;", tensor);
    const Result<ProgramSource::Pointer> source = ProgramSource::of("own", text);
    EXPECT_TRUE(source) << source.status().toString();
    const auto interface =
        ProgramInterface::make(**source, {{"columns", "50"}, {"dtype", "bf16"}, {"rows", rows}, {"groups", "3"}});
    EXPECT_TRUE(interface) << interface.status().toString();
    return drawProgramInputs(*interface, 1).status().toString();
  };
  EXPECT_EQ(refused("x[row: rows - 100;", "20"),
            "invalid argument: tensor x = extent -80: must be from 0 to 2147483647");
  EXPECT_EQ(refused("x[row: rows * 3;", "2000000000"),
            "invalid argument: tensor x = extent 6000000000: must be from 0 to 2147483647");
  EXPECT_EQ(refused("x[row;", "20"), "invalid argument: tensor x = 'row': has no extent, so nothing says how large the "
                                     "tensor is (hint: declare it, for example x[row: n])");
}

TEST_F(ProgramFile, DrawnTensorsHaveTheSizesOfTheValues) {
  values.insert({{"rows", "20"}, {"groups", "3"}});
  const Result<ProgramSource::Pointer> source = ProgramSource::of("own", kProgram);
  ASSERT_TRUE(source);
  const auto interface = ProgramInterface::make(**source, values);
  ASSERT_TRUE(interface) << interface.status().toString();
  Result<ProgramInputs> inputs = drawProgramInputs(*interface, 1);
  ASSERT_TRUE(inputs) << inputs.status().toString();
  EXPECT_EQ(inputs->tensors.size(), 4u) << "optional ones too";
  EXPECT_EQ(inputs->tensors.at("x").shape, (std::vector<int64_t>{60, 50}));
  for (const int32_t index : inputs->tensors.at("lengths").integers())
    EXPECT_EQ(index, 0);
  EXPECT_EQ(inputs->toString(), "own columns=50 dtype=bf16 rows=20 groups=3, bias [20, 50], lengths [3] (all 0), "
                                "state [20], x [60, 50]");
  inputs->setOpenScalars();
  EXPECT_TRUE(inputs->check(outputsOf(*inputs, true)).isOk());
}

} // namespace
} // namespace nsa::tools
