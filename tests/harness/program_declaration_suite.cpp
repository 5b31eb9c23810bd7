// What the declarations of a program of one's own have wrong: one error, which names the place or the declaration.
#include "tests/harness/program_fixture.h"

#include <mutex>

namespace nsa::test {
namespace {

// y = x * scale.
constexpr const char *kDeclared = R"(kernel declared

fixed   columns
choice  row_tile = 16 | 32, warps = 1 | 2
require cpu ? warps == 1 : row_tile == 16 * warps
grid    tile = ceildiv(rows, row_tile), 1, 1
threads 32 * warps

axis    row = row_tile, column = 32
tensor  x[row: rows; place: columns], y[row: rows; place: columns]
scalar  rows: i32, scale: f32

let at = tile * row_tile + iota(row) below rows
for place in 0 .. columns by column {
  store y[at; place] = load x[at; place] as f32 * scale
}
)";

struct DeclarationMistake {
  const char *from, *to; // in the text
  const char *error;
};

class ProgramDeclarations : public ProgramTest {
protected:
  static ProgramRequest requestOf(const DeclarationMistake &mistake) {
    std::string text = kDeclared;
    replaceOnce(text, mistake.from, mistake.to);
    return ProgramRequest::ofText(std::move(text), {{"dtype", "bf16"}, {"columns", "50"}, {"rows", "20"}});
  }
  // Under each policy that compiles, making and tuning the program is this error, and nothing is logged beside it.
  void expectOneError(const DeclarationMistake &mistake) {
    SCOPED_TRACE(mistake.to);
    for (const nsa_miss_policy policy : {NSA_MISS_DEFAULT, NSA_MISS_TUNE, NSA_MISS_BACKGROUND}) {
      log.clear();
      tools::EngineSettings logged = settings("", policy);
      logged.log = [](void *user, nsa_log_level, const char *, const char *message) {
        auto *test = static_cast<ProgramDeclarations *>(user);
        const std::lock_guard lock(test->mutex);
        test->log.emplace_back(message);
      };
      logged.logUser = this;
      const tools::EngineHandle engine = engineOf(logged);
      const ProgramRequest request = requestOf(mistake);
      EXPECT_EQ(request.create(engine.get(), accelerator().stream()).status().toString(), mistake.error);
      EXPECT_EQ(request.tune(engine.get(), 5).status().toString(), mistake.error);
      EXPECT_EQ(log, std::vector<std::string>()) << "the caller has the error";
    }
  }
  std::mutex mutex;
  std::vector<std::string> log;
};

TEST_F(ProgramDeclarations, NamesAreDeclaredOnce) {
  const DeclarationMistake mistakes[] = {
      {"], y[row: rows; place: columns]", "], y[row: rows; place: columns], x[row: rows; place: columns]",
       R"(compile failed: program:10:69: error: 'x' is declared twice
tensor  x[row: rows; place: columns], y[row: rows; place: columns], x[row: rows; place: columns]
                                                                    ^
program:10:9: note: first here
tensor  x[row: rows; place: columns], y[row: rows; place: columns], x[row: rows; place: columns]
        ^
 (hint: save the text as program.tile: nsa check program.tile --set columns=50 --set dtype=bf16 shows what is wrong))"},
      {"scale: f32", "scale: f32, x: i32",
       R"(compile failed: program:11:32: error: 'x' is declared twice
scalar  rows: i32, scale: f32, x: i32
                               ^
program:10:9: note: first here
tensor  x[row: rows; place: columns], y[row: rows; place: columns]
        ^
 (hint: save the text as program.tile: nsa check program.tile --set columns=50 --set dtype=bf16 shows what is wrong))"},
      {"fixed   columns", "fixed   columns, columns",
       "compile failed: template = program:3: 'columns' is declared twice"},
      {"warps = 1 | 2", "warps = 1 | 2, row_tile = 16",
       "compile failed: template = program:4: 'row_tile' is declared twice"},
      {"fixed   columns", "fixed   columns, rows",
       "invalid argument: fixed rows = fixed and a scalar: a name has one declaration (hint: a fixed value is compiled "
       "in, and a scalar is passed by each call)"},
      {"let at =", "let scale = 1\nlet at =",
       R"(compile failed: program:13:5: error: 'scale' is declared twice
let scale = 1
    ^~~~~
program:11:20: note: first here
scalar  rows: i32, scale: f32
                   ^~~~~
 (hint: save the text as program.tile: nsa check program.tile --set columns=50 --set dtype=bf16 shows what is wrong))"},
  };
  for (const DeclarationMistake &mistake : mistakes)
    expectOneError(mistake);
}

TEST_F(ProgramDeclarations, TypesAndExtents) {
  const DeclarationMistake mistakes[] = {
      {"as f32 * scale", "* scale + at",
       R"(compile failed: program:15:50: error: '+' of f32 and i32
  store y[at; place] = load x[at; place] * scale + at
                                                 ^
program:13:10: note: this is an index, i32
let at = tile * row_tile + iota(row) below rows
         ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
hint: write .. as f32
 (hint: save the text as program.tile: nsa check program.tile --set columns=50 --set dtype=bf16 shows what is wrong))"},
      {"load x[at; place]", "load x[at, at; place]",
       R"(compile failed: program:15:44: error: 'x' has 1 coordinates (row), found 2
  store y[at; place] = load x[at, at; place] as f32 * scale
                                           ^
program:10:9: note: declared here
tensor  x[row: rows; place: columns], y[row: rows; place: columns]
        ^
 (hint: save the text as program.tile: nsa check program.tile --set columns=50 --set dtype=bf16 shows what is wrong))"},
      {"load x[", "load z[",
       R"(compile failed: program:15:29: error: unknown name 'z'
  store y[at; place] = load z[at; place] as f32 * scale
                            ^
 (hint: save the text as program.tile: nsa check program.tile --set columns=50 --set dtype=bf16 shows what is wrong))"},
      {"place: columns], y", "place: columns]: f64, y",
       "invalid argument: tensor x = 'f64': must have elements of io, f32, i32, bf16, fp16, or of a record"},
      {"place: columns], y", "place: columns]: bf61, y",
       "invalid argument: tensor x = 'bf61': must have elements of io, f32, i32, bf16, fp16, or of a record"},
      {"x[row: rows;", "x[row: rows + missing;",
       "invalid argument: tensor x = rows + missing: 'missing' is no fixed value, no constant of fixed values and no "
       "scalar of i32"},
      {"x[row: rows;", "x[row: scale;",
       "invalid argument: tensor x = scale: 'scale' is no fixed value, no constant of fixed values and no scalar of "
       "i32"},
  };
  for (const DeclarationMistake &mistake : mistakes)
    expectOneError(mistake);
}

TEST_F(ProgramDeclarations, ConfigurationsAndTargets) {
  expectOneError({"choice ", "require columns == 7\nchoice ",
                  "unsupported: config = columns=50: no config of program declared is admissible; the last fell to "
                  "program:4: require columns == 7 (hint: give the program other values, or a choice that this line "
                  "admits)"});
  expectOneError({"kernel declared\n", "kernel declared\ntargets cpu, gpu, tpu\n",
                  "compile failed: template = program:2: unknown target 'tpu'"});
  const tools::EngineHandle engine = engineOf(settings());
  Result<ProgramHandle> made =
      requestOf({"kernel declared", "kernel declared", ""}).create(engine.get(), accelerator().stream());
  ASSERT_TRUE(made) << made.status().toString();
  const std::string target = describeProgram(made->get()).value("target", "");
  const std::string other = session->isCuda() ? "cpu" : "gpu", targets = "kernel declared\ntargets " + other + "\n";
  expectOneError(
      {"kernel declared\n", targets.c_str(),
       ("unsupported: program declared is not for the target " + target + " (hint: its targets are: " + other + ")")
           .c_str()});
}

// What is stored to a chosen tensor is stored to each that it may be, so none of them may overlap itself.
TEST_F(ProgramDeclarations, AStoreToAChosenTensorIsAStoreToEach) {
  std::string text = kDeclared;
  replaceOnce(text, ", y[row: rows; place: columns]", ", (y, z)[row: rows; place: columns]");
  replaceOnce(text, "for place", "let chosen = tile == 0 ? y : z\nfor place");
  replaceOnce(text, "store y[", "store chosen[");
  const tools::EngineHandle engine = engineOf(settings());
  const auto request = ProgramRequest::ofText(std::move(text), {{"dtype", "fp32"}, {"columns", "50"}, {"rows", "20"}});
  const Result<ProgramHandle> program = request.create(engine.get(), accelerator().stream());
  ASSERT_TRUE(program) << program.status().toString();
  std::vector<float> memory(1000);
  for (const std::string overlapping : {"y", "z"}) {
    nsa_tensor whole, repeated;
    const int64_t shape[] = {20, 50};
    nsa_tensor_rows(&whole, memory.data(), NSA_FP32, 2, shape);
    repeated = whole;
    repeated.strides[0] = 0;
    const nsa_program_tensor bound[] = {
        {"x", &whole}, {"y", overlapping == "y" ? &repeated : &whole}, {"z", overlapping == "z" ? &repeated : &whole}};
    const nsa_program_scalar scale = {"scale", 1};
    nsa_error error = {};
    EXPECT_EQ(nsa_program_run(program->get(), bound, 3, &scale, 1, nullptr, 0, accelerator().stream(), &error),
              NSA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.message).find(overlapping + ".strides"), std::string::npos) << error.message;
  }
}

} // namespace
} // namespace nsa::test
