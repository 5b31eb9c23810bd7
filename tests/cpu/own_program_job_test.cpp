// The command line over a program of one's own on the CPU device: run, tuned, measured, compiled and explained.
#include "tests/cpu/program_job.h"
#include "tools/nsa/files/safetensors.h"

#include <algorithm>
#include <filesystem>

namespace nsa::tools {
namespace {

class OwnProgramJob : public ProgramJob {
protected:
  static constexpr int64_t kRows = 20, kColumns = 50;

  // Row r of x has the elements r, r + 1, ..., and b is 1.
  std::string writeInput(int64_t rows = kRows) {
    HostTensor x = HostTensor::make(DType::kF32, {rows, kColumns}), b = HostTensor::make(DType::kF32, {1, kColumns});
    for (int64_t i = 0; i < rows * kColumns; ++i)
      reinterpret_cast<float *>(x.bytes.data())[i] = static_cast<float>(i / kColumns + i % kColumns);
    for (int64_t i = 0; i < kColumns; ++i)
      reinterpret_cast<float *>(b.bytes.data())[i] = 1;
    const std::string path = scratch.file("in.safetensors");
    EXPECT_TRUE(writeSafetensors(OutputFile::create(path), {{"x", &x}, {"b", &b}, {"unread", &b}}).isOk());
    return path;
  }
  HostTensor read(const std::string &name) const {
    const Result<SafetensorsFile> file = SafetensorsFile::open(output);
    EXPECT_TRUE(file) << file.status().toString();
    const Result<HostTensor> tensor = file ? file->read(name) : Result<HostTensor>(file.status());
    EXPECT_TRUE(tensor) << tensor.status().toString();
    return tensor ? *tensor : HostTensor();
  }
  std::string fails(const std::string &arguments) {
    std::filesystem::remove(output);
    EXPECT_EQ(run(arguments, 1), "") << arguments;
    EXPECT_FALSE(std::filesystem::exists(output)) << arguments;
    return test::readFile(scratch.file("stderr"));
  }

  const std::string device = " --device cpu --cache " + database;
  const std::string program = scratch.write("own.tile", R"(kernel own

fixed   columns
choice  row_tile = 16 | 32, warps = 1 | 2
require cpu ? warps == 1 : row_tile == 16 * warps
require columns <= 4096
grid    tile = ceildiv(rows, row_tile), 1, 1
threads 32 * warps

axis    row = row_tile, column = 32
tensor  x[row: rows; place: columns], b[one: 1; place: columns], y[row: rows; place: columns]
tensor  sums[row: rows]: f32 optional
scalar  rows: i32, scale: f32
work    flops = 2 * rows * columns, bytes = (2 * rows + 1) * columns * dtype_bytes

let at = tile * row_tile + iota(row) below rows
var total: [row] = 0
for place in 0 .. columns by column {
  let v = load x[at; place] * scale + load b[0; place]
  total = total + sum(v) over column
  store y[at; place] = v
}
store sums[at] = total
)");
  const std::string values = " --program " + program + " --set columns=50 --set dtype=fp32";
  const std::string softmax = " --program " NSA_SOURCE_DIR "/docs/examples/programs/softmax.tile";
};

// A row index without a bound stores behind the last row.
TEST_F(OwnProgramJob, AStoreOutsideOfATensorIsTheProgramsFault) {
  std::string text = test::readFile(program);
  test::replaceOnce(text, " below rows", "");
  const std::string job = "run --program " + scratch.write("unbounded.tile", text) +
                          " --set columns=50 --set dtype=fp32 --set rows=20 --set scale=1 --output " + output + device;
  const std::string message = fails(job);
  EXPECT_NE(message.find("invalid argument: the program stores outside of its tensors: "), std::string::npos)
      << message;
  EXPECT_NE(message.find("bytes behind y were written"), std::string::npos) << message;
  EXPECT_NE(message.find("(hint: nsa check names stores without a bound, and nsa run --check the place)"),
            std::string::npos)
      << message;
  const std::string found = fails(job + " --check");
  EXPECT_NE(found.find("invalid argument: unbounded.tile:19:11: error: the load is outside of tensor 'x': 'row' is 20, "
                       "and its extent is 20\n"),
            std::string::npos)
      << found;
  EXPECT_NE(
      found.find("\nunbounded.tile:21:3: error: the store is outside of tensor 'y': 'row' is 20, and its extent is "
                 "20\n  store y[at; place] = v\n"),
      std::string::npos)
      << found;
  EXPECT_NE(found.find("note: it is at y[20; 0] of y[20; 50], in the program tile = 1\n"), std::string::npos) << found;
}

// The call is run after it was checked, and a tensor that is updated is updated once.
TEST_F(OwnProgramJob, IsCheckedBeforeItRuns) {
  const std::string job =
      "run" + values + " --set scale=0.5 --input " + writeInput() + " --output " + output + device + " --all-outputs";
  EXPECT_FALSE(runJson(job).value("checked", true));
  const std::string unchecked = test::readFile(output);
  EXPECT_TRUE(runJson(job + " --check").value("checked", false));
  EXPECT_EQ(test::readFile(output), unchecked);
  const std::string report = run(job + " --check");
  for (const char *line : {"\nchecked  in the interpreter, which has found nothing\n", "\nnot used: unread\n"})
    EXPECT_NE(report.find(line), std::string::npos) << report;

  std::string text = test::readFile(program);
  test::replaceOnce(text, "y[row: rows; place: columns]", "y[row: rows; place: columns] inout");
  test::replaceOnce(text, "store y[at; place] = v", "store y[at; place] = load y[at; place] + 1");
  HostTensor x = HostTensor::make(DType::kF32, {kRows, kColumns}), b = HostTensor::make(DType::kF32, {1, kColumns});
  const std::string zeros = scratch.file("zeros.safetensors");
  ASSERT_TRUE(writeSafetensors(OutputFile::create(zeros), {{"x", &x}, {"b", &b}, {"y", &x}}).isOk());
  run("run --program " + scratch.write("updated.tile", text) +
      " --set columns=50 --set dtype=fp32 --set scale=1 --check --input " + zeros + " --output " + output + device);
  const HostTensor y = read("y");
  for (int64_t i = 0; i < y.elements(); ++i)
    ASSERT_EQ(reinterpret_cast<const float *>(y.bytes.data())[i], 1) << i;
}

TEST_F(OwnProgramJob, NamesAFewOfManyTensorsThatAreNotRead) {
  const HostTensor x = HostTensor::make(DType::kF32, {kRows, kColumns}),
                   b = HostTensor::make(DType::kF32, {1, kColumns});
  std::vector<std::pair<std::string, const HostTensor *>> list = {{"x", &x}, {"b", &b}};
  for (int layer = 10; layer < 21; ++layer)
    list.emplace_back("layer" + std::to_string(layer), &b);
  const std::string model = scratch.file("model.safetensors");
  ASSERT_TRUE(writeSafetensors(OutputFile::create(model), list).isOk());
  const std::string report = run("run" + values + " --set scale=1 --input " + model + " --output " + output + device);
  EXPECT_NE(report.find("\nnot used: layer10, layer11, layer12, layer13, layer14, layer15, layer16, layer17 and 3 "
                        "more\n"),
            std::string::npos)
      << report;
}

TEST_F(OwnProgramJob, RunsOverTheTensorsOfAFile) {
  const std::string job = "run" + values + " --set scale=0.5 --input " + writeInput() + " --output " + output + device;
  const nlohmann::json cold = runJson(job);
  const nlohmann::json &launch = cold["plan"]["launches"][0];
  EXPECT_EQ(launch.value("source", ""), "compiled");
  EXPECT_EQ(launch.value("template", ""), "own");
  EXPECT_GT(cold["milliseconds"].value("compile", 0.0), 0.0);
  EXPECT_GT(cold["milliseconds"].value("run", 0.0), 0.0);
  EXPECT_EQ(cold.value("inputs", ""), "own columns=50 dtype=fp32 rows=20, b [1, 50], x [20, 50]");
  EXPECT_EQ(cold["not_used"], nlohmann::json::array({"unread"}));
  EXPECT_EQ(cold.value("output", ""), output);
  const HostTensor y = read("y");
  EXPECT_EQ(y.dtype, DType::kF32);
  ASSERT_EQ(y.shape, (std::vector<int64_t>{kRows, kColumns}));
  for (int64_t i = 0; i < y.elements(); ++i)
    ASSERT_EQ(reinterpret_cast<const float *>(y.bytes.data())[i],
              static_cast<float>(i / kColumns + i % kColumns) * 0.5F + 1)
        << i;
  EXPECT_EQ(SafetensorsFile::open(output)->entries().size(), 1u) << "an optional output was not asked for";

  const nlohmann::json warm = runJson(job + " --miss fail --all-outputs");
  EXPECT_EQ(warm["plan"]["launches"][0].value("source", ""), "database");
  const HostTensor sums = read("sums");
  ASSERT_EQ(sums.shape, (std::vector<int64_t>{kRows}));
  for (int64_t row = 0; row < kRows; ++row)
    EXPECT_FLOAT_EQ(reinterpret_cast<const float *>(sums.bytes.data())[row],
                    static_cast<float>(kColumns) * (static_cast<float>(row) + (kColumns - 1) / 2.F) * 0.5F + kColumns);

  const std::string text = run(job);
  for (const char *part : {"own columns=50 dtype=fp32 rows=20, b [1, 50], x [20, 50]\n", "kernel   own@", "  own  ",
                           " from database, not tuned\n", "time     lookup "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(OwnProgramJob, DrawsTensorsWithoutAFile) {
  const std::string job =
      "run" + softmax + " --set columns=77 --set rows=5 --set dtype=fp32 --output " + output + device;
  const nlohmann::json report = runJson(job);
  EXPECT_EQ(report.value("inputs", ""), "softmax columns=77 dtype=fp32 rows=5, x [5, 77], drawn");
  const HostTensor y = read("y");
  ASSERT_EQ(y.shape, (std::vector<int64_t>{5, 77}));
  const auto *elements = reinterpret_cast<const float *>(y.bytes.data());
  for (int64_t row = 0; row < 5; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < 77; ++i)
      sum += elements[row * 77 + i];
    EXPECT_NEAR(sum, 1, 1e-5) << row;
  }
  const std::string first = test::readFile(output);
  run(job);
  EXPECT_EQ(test::readFile(output), first) << "the drawn numbers are the same each time";
}

TEST_F(OwnProgramJob, TellsWhatIsWrongWithItsTensors) {
  const std::string input = writeInput();
  const std::string job = " --set scale=1 --output " + output + device;
  const auto said = [&](const std::string &arguments, const std::string &error) {
    const std::string text = fails("run" + arguments + job);
    EXPECT_NE(text.find(error), std::string::npos) << arguments << "\n" << text;
  };
  HostTensor x = HostTensor::make(DType::kF32, {kRows, kColumns}), flat = HostTensor::make(DType::kF32, {kColumns}),
             half = HostTensor::make(DType::kBf16, {1, kColumns}), narrow = HostTensor::make(DType::kF32, {1, 49}),
             b = HostTensor::make(DType::kF32, {1, kColumns});
  const auto file = [&](const char *name, const std::vector<std::pair<std::string, const HostTensor *>> &tensors) {
    const std::string path = scratch.file(std::string(name) + ".safetensors");
    EXPECT_TRUE(writeSafetensors(OutputFile::create(path), tensors).isOk());
    return values + " --input " + path;
  };
  said(file("missing", {{"x", &x}}), "missing.safetensors has no tensor \"b\" (hint: it has: x)");
  said(file("rank", {{"x", &x}, {"b", &flat}}), "tensor b = [50]: must have the 2 dimensions [one: 1, place: columns]");
  said(file("type", {{"x", &x}, {"b", &half}}), "b.dtype = bf16: must be fp32");
  said(file("narrow", {{"x", &x}, {"b", &narrow}}), "b.shape = [1, 49]: dimension 1 must be 50 ('place: columns')");
  said(values + " --input " + input + " --set rows=19", "x.shape = [20, 50]: dimension 0 must be 19 ('row: rows')");
  said(values + " --input " + scratch.file("none.safetensors"), "none.safetensors");
  EXPECT_NE(fails("run" + values + " --input " + input + " --set scale=1 --output " + input + device)
                .find("must not be the file of --input"),
            std::string::npos);
}

TEST_F(OwnProgramJob, TellsWhatIsWrongWithItsValues) {
  const std::string input = " --input " + writeInput() + " --output " + output + device;
  const auto said = [&](const std::string &arguments, const std::string &error) {
    const std::string text = fails("run --program " + arguments + input);
    EXPECT_NE(text.find(error), std::string::npos) << arguments << "\n" << text;
  };
  const std::string own = program + " --set dtype=fp32 --set scale=1";
  said(program + " --set dtype=fp32 --set columns=50",
       "scale = absent: must be given, because no dimension of a bound tensor is 'scale'");
  said(own, "columns = nothing: the program own needs a value for 'columns' (hint: it declares 'fixed columns'; "
            "add it to the values, or to the command line as --set columns=NUMBER)");
  said(own + " --set columns=50 --set colums=3",
       "colums = 3: the program own declares no such fixed value and no such scalar (hint: did you mean 'columns'?)");
  said(own + " --set columns=50 --set row_tile=16",
       "row_tile = 16: is a choice of the program own, and no value of its calls");
  said(own + " --set columns=50 --set columns=51", "--set = columns=51: names a value that was set before");
  said(scratch.file("none.tile"), "program = " + scratch.file("none.tile") + ": cannot be read: No such file");
  said(scratch.write("bytes.tile", "kernel \xff\n"), "bytes.tile:1:8: error: ");
  const std::string wide =
      fails("run --program " + program + " --set dtype=fp32 --set scale=1 --set columns=5000 --set rows=4 --output " +
            output + device);
  EXPECT_NE(wide.find("config = columns=5000: no config of program own is admissible; the last fell to own.tile:6: "
                      "require columns <= 4096"),
            std::string::npos)
      << wide;
  const std::string none = fails("run --program " + own + " --set columns=0 --set rows=4 --output " + output + device);
  EXPECT_NE(none.find("own.tile:11:29: error: rows of 'x' have 0 columns"), std::string::npos) << none;
  EXPECT_NE(none.find("(hint: nsa check own.tile --set columns=0 --set dtype=fp32 shows what is wrong)"),
            std::string::npos)
      << none;
  const std::string miss = fails("run" + values + " --set scale=1 --miss fail" + input);
  EXPECT_NE(miss.find("\nThis stores what is missing:\nnsa tune --program " + program +
                      " --set columns=50 --set dtype=fp32 --set rows=20 --set scale=1 --device cpu --cache " +
                      database + "\n"),
            std::string::npos)
      << miss;
}

TEST_F(OwnProgramJob, IsTunedOnce) {
  const std::string all = values + " --set rows=20" + device;
  const nlohmann::json report = runJson("tune" + all);
  EXPECT_TRUE(report.value("tuned", false)) << report.dump(2);
  EXPECT_EQ(report.value("measured", 0), 2) << report.dump(2);
  const nlohmann::json listing = runJson("cache list --cache " + database);
  ASSERT_EQ(listing["choices"].size(), 1u);
  EXPECT_TRUE(listing["choices"][0].value("tuned", false));

  const nlohmann::json warm = runJson("run" + values + " --set scale=1 --input " + writeInput() + " --output " +
                                      output + device + " --miss fail");
  EXPECT_TRUE(warm["plan"]["launches"][0].value("tuned", false)) << warm.dump(2);
  const nlohmann::json explained = runJson("explain" + all);
  EXPECT_EQ(explained.value("part", ""), "own");
  EXPECT_EQ(explained["database"].value("config", ""), report["winner"].value("config", "?")) << explained.dump(2);
  const std::string text = run("explain" + all);
  EXPECT_NE(text.find("database   " + database + " holds "), std::string::npos) << text;
  EXPECT_NE(text.find("measured"), std::string::npos) << text;

  const std::string table = run("tune" + all);
  for (const std::string &part : {std::string("own@"), std::string("winner "), "Database: " + database})
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
}

// An explanation of what cannot be made fails, as for an operator.
TEST_F(OwnProgramJob, ExplainSaysWhyItWouldFail) {
  const std::string text = run("explain" + values + " --set rows=20 --miss fail" + device, 1);
  EXPECT_NE(text.find("stored     no kernel for it"), std::string::npos) << text;
  EXPECT_NE(test::readFile(scratch.file("stderr")).find("nsa: unavailable: the program would fail:\n  own@"),
            std::string::npos);
}

TEST_F(OwnProgramJob, IsMeasuredBesideItsWork) {
  const std::string job =
      "bench program" + values + " --set rows=2000 --samples 3 --device cpu --tune --kernel-budget 5";
  const std::string results = scratch.file("results");
  const nlohmann::json report = runJson(job + " --results " + results);
  ASSERT_EQ(report["results"].size(), 2u) << report.dump(2);
  ASSERT_GT(report["roof"].value("tflops", 0.0), 0);
  for (const nlohmann::json &row : report["results"]) {
    const double milliseconds = row.value("median_ms", 0.0);
    EXPECT_EQ(row.value("values", ""), "columns=50 dtype=fp32 rows=2000");
    EXPECT_EQ(row.value("flops", 0.0), 2 * 2000 * 50);
    EXPECT_EQ(row.value("bytes", 0.0), 4001 * 50 * 4);
    EXPECT_NEAR(row.value("tflops", 0.0) * milliseconds * 1e9, row.value("flops", 0.0), 1e3);
    EXPECT_NEAR(row.value("gigabytes_per_second", 0.0) * milliseconds * 1e6, row.value("bytes", 0.0), 4e3);
    const double arithmetic = row.value("tflops", 0.0) / report["roof"].value("tflops", 1.0) * 100;
    const double memory =
        row.value("gigabytes_per_second", 0.0) / report["roof"].value("terabytes_per_second", 1.0) * 0.1;
    EXPECT_NEAR(row.value("percent_of_arithmetic", 0.0) / arithmetic, 1, 2e-3);
    EXPECT_NEAR(row.value("percent_of_memory", 0.0) / memory, 1, 2e-3);
    EXPECT_NEAR(row.value("percent_of_roof", 0.0) / std::max(arithmetic, memory), 1, 2e-3);
    EXPECT_NE(row.value("config", ""), "");
  }
  EXPECT_EQ(report["results"][1].value("implementation", ""), "nsa tuned");
  EXPECT_GT(report["results"][1].value("tune_ms", 0.0), 0);
  EXPECT_TRUE(std::filesystem::exists(results + "/own.csv"));

  const std::string table =
      run("bench program" + softmax + " --set columns=77 --set rows=50 --set dtype=bf16" + " --samples 3 --device cpu");
  for (const char *part : {"% of roof", "softmax", "columns=77 dtype=bf16 rows=50", "nsa default"})
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
}

TEST_F(OwnProgramJob, IsMeasuredWithoutDeclaredWork) {
  std::string text = test::readFile(program);
  text.erase(text.find("work "), text.find('\n', text.find("work ")) - text.find("work "));
  const std::string job = "bench program --program " + scratch.write("idle.tile", text) +
                          " --set columns=50 --set dtype=fp32 --set rows=20 --samples 3 --device cpu";
  const nlohmann::json report = runJson(job);
  const nlohmann::json &row = report["results"][0];
  EXPECT_GT(row.value("median_ms", 0.0), 0);
  for (const char *field : {"flops", "bytes", "tflops", "percent_of_arithmetic", "gigabytes_per_second",
                            "percent_of_memory", "percent_of_roof"})
    EXPECT_TRUE(row[field].is_null()) << field;
  EXPECT_FALSE(report.contains("roof"));
  EXPECT_NE(run(job).find("own"), std::string::npos);
}

TEST_F(OwnProgramJob, WorkThatIsNoneIsAnError) {
  std::string text = test::readFile(program);
  text.replace(text.find("2 * rows * columns"), 18, "rows - rows");
  const std::string job = " --set columns=50 --set dtype=fp32 --set rows=20 --device cpu";
  run("bench program --program " + scratch.write("none.tile", text) + job, 1);
  EXPECT_NE(
      test::readFile(scratch.file("stderr")).find("work flops = 0: must be at least 1 (hint: it is 'rows - rows')"),
      std::string::npos);
  text.replace(text.find("rows - rows"), 11, "row_tile");
  run("bench program --program " + scratch.write("choice.tile", text) + job, 1);
  EXPECT_NE(test::readFile(scratch.file("stderr"))
                .find("work flops = row_tile: 'row_tile' is no fixed value, no constant of fixed values and no scalar"),
            std::string::npos)
      << test::readFile(scratch.file("stderr"));
}

TEST_F(OwnProgramJob, IsCompiledToEachStage) {
  const std::string job = "compile --program " + program + " --set columns=50 --set dtype=fp32";
  for (const auto &[target, stage, part] : {std::tuple("cpu", "template", "kernel own"),
                                            {"cpu", "tile", "tile."},
                                            {"cpu", "llvm", "define"},
                                            {"sm_90a", "cuda", "extern \"C\" __global__"}}) {
    const std::string text = run(job + " --target " + target + " --emit " + stage);
    EXPECT_NE(text.find(part), std::string::npos) << stage << "\n" << text.substr(0, 500);
  }
  const nlohmann::json list = runJson(job + " --target sm_90a --list");
  EXPECT_EQ(list["candidates"].size(), 2u) << list.dump(2);
  const nlohmann::json image =
      runJson(job + " --set row_tile=32 --target cpu --emit image -o " + scratch.file("own.image"));
  EXPECT_NE(image.value("manifest", "").find("config row_tile=32"), std::string::npos) << image.dump(2);
  run(job + " --set row_tile=17 --target cpu --emit tile", 1);
  EXPECT_NE(test::readFile(scratch.file("stderr")).find("row_tile"), std::string::npos);
  run(job + " --set row_tle=16 --target cpu --emit tile", 1);
  EXPECT_NE(test::readFile(scratch.file("stderr")).find("row_tle = 16: the program own declares no such fixed value"),
            std::string::npos);
}

} // namespace
} // namespace nsa::tools
