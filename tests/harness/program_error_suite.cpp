// What a caller gets wrong with a program of one's own: every error names the field, its value and the rule.
#include "tests/harness/program_fixture.h"

#include <functional>

namespace nsa::test {
namespace {

// y = x * scale + b + shift.
constexpr const char *kText = R"(kernel scaled

fixed   columns
choice  row_tile = 16 | 32, warps = 1 | 2
require cpu ? warps == 1 : row_tile == 16 * warps
require columns <= 4096
grid    tile = ceildiv(rows, row_tile), 1, 1
threads 32 * warps

axis    row = row_tile, column = 32
tensor  x[row: rows; place: columns], b[one: 1; place: columns]: f32 optional, y[row: rows; place: columns]
scalar  rows, shift: i32, scale: f32

let at = tile * row_tile + iota(row) below rows
for place in 0 .. columns by column {
  let scaled = load x[at; place] as f32 * scale + shift as f32
  store y[at; place] = b.present ? scaled + load b[0; place] : scaled
}
)";
constexpr int64_t kRows = 20, kColumns = 50;

ProgramRequest scaled(std::string text = kText) {
  return ProgramRequest::ofText(
      std::move(text), {{"dtype", "bf16"}, {"columns", std::to_string(kColumns)}, {"rows", std::to_string(kRows)}});
}

// A call of it with x = 1.
Example scaledCall(double y) {
  const auto count = static_cast<size_t>(kRows * kColumns);
  Example example;
  example.of = {"scaled", DType::kBf16, {}};
  example.tensors = {{"x", DType::kBf16, {kRows, kColumns}, false, std::vector<double>(count, 1), kColumns},
                     {"y", DType::kBf16, {kRows, kColumns}, true, std::vector<double>(count, y), kColumns}};
  example.scalars = {{"scale", 2}, {"shift", 1}};
  return example;
}

std::string edited(const std::string &from, const std::string &to) {
  std::string text = kText;
  replaceOnce(text, from, to);
  return text;
}

// A change of a request or of a call, and the error that it becomes.
struct ValueMistake {
  const char *name, *value; // "" removes it
  const char *error;
};
struct CallMistake {
  std::function<void(ProgramCall &)> make;
  const char *error;
};

class ProgramErrors : public ProgramTest {
protected:
  void SetUp() override {
    ProgramTest::SetUp();
    if (!IsSkipped())
      engine = engineOf(settings());
  }

  std::string createError(const ProgramRequest &request) const {
    return request.create(engine.get(), accelerator().stream()).status().toString();
  }
  ProgramHandle made() const {
    Result<ProgramHandle> program = scaled().create(engine.get(), accelerator().stream());
    EXPECT_TRUE(program) << program.status().toString();
    return program ? std::move(*program) : nullptr;
  }
  // The program's results for x = 1 are all `y`.
  void expectResult(const ProgramHandle &program, double y) const {
    Result<ProgramCall> call = ProgramCall::make(accelerator(), program.get(), scaledCall(y));
    ASSERT_TRUE(call) << call.status().toString();
    const Status status = call->run();
    ASSERT_TRUE(status.isOk()) << status.toString();
    call->expectRight();
  }
  tools::EngineHandle engine;
};

TEST_F(ProgramErrors, ValuesAreNamed) {
  const ValueMistake mistakes[] = {
      {"columns", "",
       "invalid argument: columns = nothing: the program scaled needs a value for 'columns' (hint: it declares 'fixed "
       "columns'; add it to the values, or to the command line as --set columns=NUMBER)"},
      {"colums", "3",
       "invalid argument: colums = 3: the program scaled declares no such fixed value and no such scalar (hint: did "
       "you "
       "mean 'columns'?)"},
      {"weight", "3",
       "invalid argument: weight = 3: the program scaled declares no such fixed value and no such scalar (hint: it "
       "declares columns, rows, shift, scale)"},
      {"dtype", "",
       "invalid argument: dtype = nothing: the program scaled needs a value for 'dtype' (hint: tensor x is of the "
       "call's element type; add it to the values, or to the command line as --set dtype=bf16, fp16 or fp32)"},
      {"dtype", "int32", "invalid argument: dtype = 'int32': must be one of bf16, fp16, fp32"},
      {"columns", "5 0", "invalid argument: columns = '5 0': must be an integer, or a word such as bf16"},
      {"rows", "",
       "invalid argument: rows = nothing: the program scaled needs the greatest 'rows' of its calls, which chooses the "
       "kernel (hint: its grid or its tensors are made of it; add it to the values, or to the command line as --set "
       "rows=NUMBER)"},
      {"rows", "many", "invalid argument: rows = 'many': must be an integer of 32 bits, because the scalar is i32"},
      {"rows", "3000000000",
       "invalid argument: rows = '3000000000': must be an integer of 32 bits, because the scalar is i32"},
      {"rows", "-1", "invalid argument: rows = -1: must be at least 0"},
      {"scale", "x", "invalid argument: scale = 'x': must be a number, because the scalar is f32"},
      {"columns", "5000",
       "unsupported: config = columns=5000: no config of program scaled is admissible; the last fell to program:6: "
       "require columns <= 4096 (hint: give the program other values, or a choice that this line admits)"},
  };
  for (const ValueMistake &mistake : mistakes)
    EXPECT_EQ(createError(scaled().with(mistake.name, mistake.value)), mistake.error);
}

TEST_F(ProgramErrors, TextsAreShownWhereTheyAreWrong) {
  EXPECT_EQ(createError(scaled(edited("let at =", "let at"))),
            R"(compile failed: program:14:8: error: expected '=', found 'tile'
let at tile * row_tile + iota(row) below rows
       ^~~~
 (hint: save the text as program.tile: nsa check program.tile shows what is wrong))");
  EXPECT_EQ(createError(scaled(edited("shift as f32", "shift"))),
            R"(compile failed: program:16:49: error: '+' of f32 and i32
  let scaled = load x[at; place] as f32 * scale + shift
                                                ^
program:12:15: note: this is i32
scalar  rows, shift: i32, scale: f32
              ^~~~~
hint: write .. as f32
 (hint: save the text as program.tile: nsa check program.tile --set columns=50 --set dtype=bf16 shows what is wrong))");
  EXPECT_EQ(createError(scaled(edited("\n\nfixed", "\nimport nothing\n\nfixed"))),
            R"(compile failed: program:2:8: error: there is no library 'nothing'
import nothing
       ^~~~~~~
 (hint: save the text as program.tile: nsa check program.tile shows what is wrong))");
  EXPECT_EQ(createError(scaled(edited("\n\nfixed", "\nimport softmx\n\nfixed"))),
            R"(compile failed: program:2:8: error: there is no library 'softmx'
import softmx
       ^~~~~~
hint: did you mean 'softmax'?
 (hint: save the text as program.tile: nsa check program.tile shows what is wrong))");
  EXPECT_EQ(createError(ProgramRequest::ofText("library own\n\nfn f(x) { return x }\n", {})),
            R"(compile failed: program:1:1: error: a library is no program
library own
^~~~~~~~~~~
hint: run a file that begins with 'kernel'
 (hint: save the text as program.tile: nsa check program.tile shows what is wrong))");
}

TEST_F(ProgramErrors, DeclarationsThatNoCallerCanServe) {
  EXPECT_EQ(
      createError(scaled(edited("optional,", "paged(16),"))),
      "invalid argument: tensor b = paged: a program of one's own has no tensors in pages (hint: address the pages "
      "by a table of i32)");
  EXPECT_EQ(createError(scaled(edited(": f32 optional,", ": gradient optional,"))),
            "invalid argument: tensor b = gradient: a program of one's own has no gradients, whose type each call says "
            "(hint: declare the type of the elements: f32, or nothing for the call's element type)");
  EXPECT_EQ(createError(scaled(edited("rows, shift: i32", "rows: i32, shift: i64"))),
            "invalid argument: scalar shift = i64: must be i32 or f32");
  EXPECT_EQ(
      createError(scaled(edited("kernel scaled", "kernel scaled serves combine"))),
      "compile failed: template = program:1: kernel 'scaled' serves an operator, and a program of one's own serves "
      "none (hint: run it as a template of the operator, or leave out 'serves')");
  const Status untuned = scaled(edited("x[row: rows;", "x[row;")).tune(engine.get(), 1).status();
  EXPECT_EQ(
      untuned.toString(),
      "invalid argument: program scaled: tensor x = 'row': has no extent, so nothing says how large the tensor is "
      "(hint: declare it, for example x[row: n])");
}

TEST_F(ProgramErrors, FilesThatAreNoProgram) {
  const std::string missing = scratch.file("none.tile");
  EXPECT_EQ(createError(ProgramRequest::ofFile(missing, {})),
            "invalid argument: program = " + missing + ": cannot be read: No such file or directory");
  EXPECT_EQ(createError(ProgramRequest::ofFile(scratch.path(), {})),
            "invalid argument: program = " + scratch.path() + ": is no regular file");
  const std::string library = scratch.write("own.tile", "library own\n\nfn f(x) { return x }\n");
  EXPECT_TRUE(createError(ProgramRequest::ofFile(library, {}))
                  .starts_with("compile failed: own.tile:1:1: error: a library is no program\n"));
  EXPECT_TRUE(createError(ProgramRequest::ofFile(scratch.write("empty.tile", ""), {}))
                  .starts_with("compile failed: empty.tile:1:1: error: the file has no program\n"));
}

TEST_F(ProgramErrors, ArgumentsOfTheFunctions) {
  nsa_error error = {};
  nsa_program *program = nullptr;
  nsa_program_source source = NSA_INIT(nsa_program_source);
  const auto create = [&](const nsa_program_source *from, const nsa_program_value *values, size_t count) {
    EXPECT_EQ(nsa_program_create(engine.get(), from, values, count, nullptr, &program, &error), NSA_INVALID_ARGUMENT);
    EXPECT_EQ(program, nullptr);
    return std::string(error.message);
  };
  EXPECT_EQ(create(nullptr, nullptr, 0), "source = null: must not be null");
  EXPECT_EQ(create(&source, nullptr, 0), "source = neither path nor text: must have either a path or a text");
  source.text = kText;
  source.path = "file.tile";
  EXPECT_EQ(create(&source, nullptr, 0), "source = path and text: must have either a path or a text");
  source.path = nullptr;
  EXPECT_EQ(create(&source, nullptr, 1), "values = null: must not be null");
  const nsa_program_value twice[] = {{"rows", "1"}, {"rows", "2"}}, unnamed[] = {{nullptr, "1"}},
                          empty[] = {{"rows", nullptr}};
  EXPECT_EQ(create(&source, twice, 2), "rows = 2: stands twice in values");
  EXPECT_EQ(create(&source, unnamed, 1), "values.name = null: must not be null");
  EXPECT_EQ(create(&source, empty, 1), "values.value = null: must not be null");
  EXPECT_EQ(nsa_program_create(engine.get(), &source, nullptr, 0, nullptr, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "program = null: must not be null");
  EXPECT_EQ(nsa_program_create(nullptr, &source, nullptr, 0, nullptr, &program, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "engine = null: must not be null");
  EXPECT_EQ(nsa_program_run(nullptr, nullptr, 0, nullptr, 0, nullptr, 0, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "program = null: must not be null");
  EXPECT_EQ(nsa_program_status(nullptr, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_program_describe(nullptr, nullptr, &error), NSA_INVALID_ARGUMENT);
  size_t bytes = 0;
  EXPECT_EQ(nsa_program_workspace_size(nullptr, &bytes, &error), NSA_INVALID_ARGUMENT);
  const ProgramHandle good = made();
  EXPECT_EQ(nsa_program_workspace_size(good.get(), nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "bytes = null: must not be null");
  EXPECT_EQ(nsa_program_describe(good.get(), nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "json = null: must not be null");
  EXPECT_EQ(nsa_program_run(good.get(), nullptr, 1, nullptr, 0, nullptr, 0, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "tensors = null: must not be null");
  EXPECT_EQ(nsa_program_run(good.get(), nullptr, 0, nullptr, 1, nullptr, 0, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "scalars = null: must not be null");
  nsa_program_destroy(nullptr);
}

TEST_F(ProgramErrors, TensorsOfACall) {
  const CallMistake mistakes[] = {
      {[](ProgramCall &call) { call.tensors.pop_back(); },
       "invalid argument: program scaled: y = absent: must be bound, because it is not optional (hint: its dimensions "
       "are [row: rows, "
       "place: columns])"},
      {[](ProgramCall &call) { call.names[0] = "xx"; },
       "invalid argument: program scaled: tensor = xx: the program declares no such tensor (hint: did you mean 'x'?)"},
      {[](ProgramCall &call) { call.names[1] = "result"; },
       "invalid argument: program scaled: tensor = result: the program declares no such tensor (hint: it declares x, "
       "b, y)"},
      {[](ProgramCall &call) {
         call.names.push_back("x");
         call.tensors.push_back(call.tensors[0]);
       },
       "invalid argument: program scaled: x = bound twice: each name may be bound once"},
      {[](ProgramCall &call) { call.tensors[0].rank = 1; }, "invalid argument: program scaled: x.rank = 1: must be 2 "
                                                            "(hint: its dimensions are [row: rows, place: columns])"},
      {[](ProgramCall &call) { call.tensors[0].dtype = NSA_FP16; },
       "invalid argument: program scaled: x.dtype = fp16: must be bf16"},
      {[](ProgramCall &call) { call.tensors[0].accumulate = 1; },
       "invalid argument: program scaled: x.accumulate = 1: must be 0, because a call adds only to the gradients that "
       "it writes"},
      {[](ProgramCall &call) { call.tensors[0].shape[1] = 49; },
       "invalid argument: program scaled: x.shape = [20, 49]: dimension 1 must be 50 ('place: columns')"},
      {[](ProgramCall &call) { call.tensors[1].shape[0] = 19; },
       "invalid argument: program scaled: y.shape = [19, 50]: dimension 0 must be 20 ('row: rows')"},
      {[](ProgramCall &call) { call.tensors[1].shape[0] = -1; },
       "invalid argument: program scaled: y.shape = [-1, 50]: each extent must be from 0 to 2^31 - 1"},
      {[](ProgramCall &call) { call.tensors[1].strides[1] = 2; },
       "invalid argument: program scaled: y.strides = 2: the last dimension must be contiguous (stride 1) (hint: "
       "strides are in "
       "elements, not bytes)"},
      {[](ProgramCall &call) { call.tensors[1].strides[0] = 49; },
       "invalid argument: program scaled: y.strides = [49, 1]: elements of an output must not share memory, and with "
       "the shape [20, "
       "50] "
       "some do (hint: strides are in elements, not bytes)"},
      {[](ProgramCall &call) { call.tensors[0].data = nullptr; },
       "invalid argument: program scaled: x.data = null: must point to [20, 50] elements"},
      {[](ProgramCall &call) { call.scalars[0].first = "scal"; },
       "invalid argument: program scaled: scalar = scal: the program declares no such scalar (hint: did you mean "
       "'scale'?)"},
      {[](ProgramCall &call) { call.scalars.pop_back(); }, "invalid argument: program scaled: shift = absent: must be "
                                                           "given, because no dimension of a bound tensor is 'shift'"},
      {[](ProgramCall &call) { call.scalars.push_back(call.scalars[0]); },
       "invalid argument: program scaled: scale = given twice: each scalar may be given once"},
      {[](ProgramCall &call) { call.scalars[1].second = 1.5; },
       "invalid argument: program scaled: shift = 1.5: must be an integer of 32 bits, because the scalar is i32"},
      {[](ProgramCall &call) { call.scalars.emplace_back("rows", kRows + 1); },
       "invalid argument: program scaled: x.shape = [20, 50]: dimension 0 must be 21 ('row: rows')"},
  };
  const ProgramHandle program = made();
  ASSERT_TRUE(program);
  for (const CallMistake &mistake : mistakes) {
    Result<ProgramCall> call = ProgramCall::make(accelerator(), program.get(), scaledCall(3));
    ASSERT_TRUE(call) << call.status().toString();
    mistake.make(*call);
    EXPECT_EQ(call->run().toString(), mistake.error);
  }
  Result<ProgramCall> odd = ProgramCall::make(accelerator(), program.get(), scaledCall(3));
  ASSERT_TRUE(odd);
  odd->tensors[0].data = static_cast<char *>(odd->tensors[0].data) + 1;
  const std::string error = odd->run().toString();
  EXPECT_TRUE(error.starts_with("invalid argument: program scaled: x.data = 0x")) << error;
  EXPECT_TRUE(error.ends_with(": must be a multiple of the element's 2 bytes")) << error;
  nsa_error unbound = {};
  EXPECT_EQ(nsa_program_run(program.get(), nullptr, 0, nullptr, 0, nullptr, 0, nullptr, &unbound),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(unbound.message, "program scaled: x = absent: must be bound, because it is not optional");
  Result<ProgramCall> many = ProgramCall::make(accelerator(), program.get(), scaledCall(3));
  ASSERT_TRUE(many);
  many->scalars.resize(500, many->scalars[0]);
  const std::string scalars = many->run().toString();
  EXPECT_TRUE(scalars.starts_with("invalid argument: scalars = 500: a program takes at most ")) << scalars;
  many->names.resize(500, "x");
  many->tensors.resize(500, many->tensors[0]);
  const std::string tensors = many->run().toString();
  EXPECT_TRUE(tensors.starts_with("invalid argument: tensors = 500: a program takes at most ")) << tensors;
  expectResult(program, 3);
}

// What the extents say may be said once more.
TEST_F(ProgramErrors, AScalarThatAnExtentSaysMayBeGiven) {
  const ProgramHandle program = made();
  Result<ProgramCall> call = ProgramCall::make(accelerator(), program.get(), scaledCall(3));
  ASSERT_TRUE(call) << call.status().toString();
  call->scalars.emplace_back("rows", kRows);
  const Status status = call->run();
  ASSERT_TRUE(status.isOk()) << status.toString();
  call->expectRight();
}

TEST_F(ProgramErrors, AMissSaysHowTheKernelIsMade) {
  const tools::EngineHandle strict = engineOf(settings("", NSA_MISS_FAIL));
  const Status miss = scaled().create(strict.get()).status();
  EXPECT_EQ(miss.code(), ErrorCode::kCacheMiss);
  EXPECT_TRUE(miss.error().message.starts_with("no stored kernel for 'scaled@")) << miss.toString();
  EXPECT_NE(miss.error().message.find(" columns=50 dtype=bf16 | rows=32' on '"), std::string::npos) << miss.toString();
  EXPECT_TRUE(miss.error().hint.starts_with(
      "nsa tune --program scaled.tile --set columns=50 --set dtype=bf16 --set rows=20 --device "))
      << miss.error().hint;
  EXPECT_TRUE(
      miss.error().hint.ends_with(" # first save the text of the program as scaled.tile; a pack for NSA_CACHE_PACKS"))
      << miss.error().hint;
  EXPECT_EQ(
      scaled().tune(strict.get(), 1).status().toString(),
      "invalid argument: miss_policy = fail: opens no compiler, so nothing is tuned (hint: tune with an engine of "
      "another miss policy)");
}

// A program keeps the texts that it was made of: its file may change, and so may a library beside it.
TEST_F(ProgramErrors, AFileThatChangesChangesLaterProgramsAlone) {
  std::string importing = edited("* scale + shift as f32", "* twice(scale) + shift as f32");
  replaceOnce(importing, "\n\nfixed", "\nimport factors\n\nfixed");
  const std::string path = scratch.write("scaled.tile", importing);
  const ProgramRequest request = ProgramRequest::ofFile(path, {{"dtype", "bf16"}, {"columns", "50"}, {"rows", "20"}});
  const auto create = [&] {
    Result<ProgramHandle> program = request.create(engine.get(), accelerator().stream());
    EXPECT_TRUE(program) << program.status().toString();
    return program ? std::move(*program) : nullptr;
  };
  scratch.write("library/factors.tile", "library factors\n\nfn twice(x) { return x * 2 }\n");
  const ProgramHandle first = create();
  expectResult(first, 5); // 1 * (2 * 2) + 1
  scratch.write("library/factors.tile", "library factors\n\nfn twice(x) { return x * 3 }\n");
  const ProgramHandle second = create();
  expectResult(second, 7);
  replaceOnce(importing, "shift as f32", "2.0 * shift as f32");
  scratch.write("scaled.tile", importing);
  const ProgramHandle third = create();
  expectResult(third, 8);
  std::filesystem::remove(path);
  expectResult(first, 5);
  expectResult(second, 7);
  EXPECT_FALSE(request.create(engine.get())) << "its file is gone";
  EXPECT_EQ(describeProgram(third.get()).value("source", ""), "compiled");
}

// A program beside a program may have the name of a library, and is none.
TEST_F(ProgramErrors, AKernelBesideAProgramIsNoLibrary) {
  const std::string library = "library factors\n\nfn twice(x) { return x * 2 }\n";
  std::string importing = edited("* scale + shift as f32", "* twice(scale) + shift as f32");
  replaceOnce(importing, "\n\nfixed", "\nimport factors\n\nfixed");
  const ProgramRequest request = ProgramRequest::ofFile(scratch.write("scaled.tile", importing),
                                                        {{"dtype", "bf16"}, {"columns", "50"}, {"rows", "20"}});
  scratch.write("factors.tile", "kernel factors\n\nfixed   other\n");
  EXPECT_EQ(createError(request), R"(compile failed: scaled.tile:2:8: error: there is no library 'factors'
import factors
       ^~~~~~~
 (hint: nsa check scaled.tile shows what is wrong))");
  scratch.write("library/factors.tile", library);
  replaceOnce(importing, "import factors", "import factors, factrs");
  scratch.write("scaled.tile", importing);
  EXPECT_EQ(createError(request), R"(compile failed: scaled.tile:2:17: error: there is no library 'factrs'
import factors, factrs
                ^~~~~~
hint: did you mean 'factors'?
 (hint: nsa check scaled.tile shows what is wrong))");
  replaceOnce(importing, "import factors, factrs", "import factors");
  scratch.write("scaled.tile", importing);
  Result<ProgramHandle> program = request.create(engine.get(), accelerator().stream());
  ASSERT_TRUE(program) << program.status().toString();
  expectResult(*program, 5);
  // A kernel in the folder of libraries is an error.
  scratch.write("library/factors.tile", kText);
  const std::string error = createError(request);
  EXPECT_NE(error.find("'factors'"), std::string::npos) << error;
}

} // namespace
} // namespace nsa::test
