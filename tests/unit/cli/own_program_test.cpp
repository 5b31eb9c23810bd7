// The options that name a program of one's own, which all verbs read alike, and what is said without a compiler.
#include "tests/unit/cli/program_fixture.h"

namespace nsa::tools {
namespace {

class OwnProgram : public Program {
protected:
  const std::string file = scratch.write("own.tile", R"(kernel own

fixed   columns
choice  row_tile = 16 | 32
grid    tile = ceildiv(rows, row_tile), 1, 1
threads 32

axis    row = row_tile, column = 32
tensor  x[row: rows; place: columns], y[row: rows; place: columns]
scalar  rows: i32

let at = tile * row_tile + iota(row) below rows
for place in 0 .. columns by column {
  store y[at; place] = load x[at; place]
}
)");
  const std::string program = " --program " + file;
  const std::string values = program + " --set columns=50 --set dtype=fp32";
};

TEST_F(OwnProgram, StandsInThePlaceOfAnOperator) {
  const std::string spec = " --op window --config " + shape;
  const std::string out = " --output " + output;
  for (const std::string &verb :
       {"run" + out, std::string("tune"), std::string("explain"), std::string("compile --target cpu --emit tile")})
    for (const auto &[options, names] : {std::pair(spec, "--op"), std::pair(" --config " + shape, "--config")}) {
      const Outcome outcome = run(verb + program + options);
      EXPECT_EQ(outcome.code, 2) << verb << options;
      EXPECT_NE(outcome.err.find(names), std::string::npos) << outcome.err;
      EXPECT_EQ(outcome.err.find(" required"), std::string::npos) << outcome.err;
    }
  for (const char *verb : {"tune", "explain", "compile --target cpu --emit tile"})
    for (const char *option : {"--batch 2", "--seqlen-q 3", "--seqlen-k 4", "--tokens-q 5", "--input i"}) {
      const Outcome outcome = run(verb + program + " " + option);
      EXPECT_EQ(outcome.code, 2) << verb << option;
    }
  expectUsageError("run --decode-last 1" + out + program, "excludes");
  expectUsageError("compile --target cpu --emit tile --template attention" + program, "excludes");
  expectUsageError("tune nsa128" + program, "excludes");
  expectUsageError("bench program --op window" + program, "--op");
}

TEST_F(OwnProgram, OneOfBothIsNeeded) {
  expectUsageError("run --output " + output, "--op or --program is required");
  expectUsageError("run --op window --output " + output, "--config is required");
  expectUsageError("run --op window --config c --output " + output, "--input is required");
  expectUsageError("run" + values, "--output is required");
  expectUsageError("explain", "--op or --program is required");
  expectUsageError("compile --target cpu --emit tile", "--op or --program is required");
  expectUsageError("tune", "WORKLOAD, --op, --program or --list is required");
  expectUsageError("tune --budget 5" + values, "with --op and --program the option is --kernel-budget");
  expectUsageError("bench program", "--program is required");
  for (const char *verb : {"run --op window --config c --input i --output o", "explain --op window --config c",
                           "tune --op window --config c"})
    expectUsageError(std::string(verb) + " --set a=1", "--set requires --program");
  expectUsageError("explain" + program + " --set columns", "'columns' is not NAME=VALUE");
}

TEST_F(OwnProgram, ValuesAndTextsAreSaidAlikeByAllVerbs) {
  for (const std::string &verb : {"run --output " + output, std::string("tune --cache :memory:"),
                                  std::string("explain --cache :memory:"), std::string("bench program")}) {
    expectFailure(verb + " --program " + scratch.file("none.tile"),
                  "program = " + scratch.file("none.tile") + ": cannot be read: No such file or directory");
    expectFailure(verb + " --program " + scratch.write("bytes.tile", "kernel \xff\n"), "bytes.tile:1:8: error: ");
    expectFailure(verb + program + " --set dtype=fp32 --set rows=5",
                  "columns = nothing: the program own needs a value for 'columns'");
    expectFailure(verb + values + " --set rows=5 --set width=3",
                  "width = 3: the program own declares no such fixed value and no such scalar");
    expectFailure(verb + values + " --set rows=5 --set row_tile=16",
                  "row_tile = 16: is a choice of the program own, and no value of its calls (hint: tuning makes the "
                  "choice; nsa compile takes choices, too)");
    expectFailure(verb + values + " --set rows=5 --set rows=6", "--set = rows=6: names a value that was set before");
    expectFailure(verb + values, "rows = nothing: the program own needs the greatest 'rows' of its calls");
  }
}

} // namespace
} // namespace nsa::tools
