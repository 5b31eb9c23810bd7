// Columns that a tile has and the rows of a tensor do not: none of them is read, written or counted, whatever the bound
// of their index says.
#include "tests/harness/program_fixture.h"

#include <cmath>

namespace nsa::test {
namespace {

// A tile has 32 columns, and rows have 20 or 52. `end` is a bound that the compiler does not know.
constexpr const char *kWide = R"(kernel wide

choice  row_tile = 16, warps = 1
grid    tile = ceildiv(rows, row_tile), 1, 1
threads 32 * warps

axis    row = row_tile, column = 32
tensor  x[row: rows; place: 20]: f32, longer[row: rows; place: 52]: f32
tensor  sums[row: rows, which: 6]: f32, (y, z)[row: rows; place: 20]: f32
scalar  rows, end, before: i32

let at     = tile * row_tile + iota(row) below rows
let place  = iota(column)
let beyond = iota(column) below 32
let any    = iota(column) below end
store sums[at, 0] = sum(exp2(load x[at; place])) over column
store sums[at, 1] = sum(exp2(load x[at; beyond])) over column
store sums[at, 2] = sum(exp2(load x[at; any])) over column
var walked: [row] = 0
for part in 0 .. end + 20 by column {
  walked += sum(exp2(load longer[at; part])) over column
}
store sums[at, 3] = walked
// The first ten columns of the second tile, and a tile in front of the row.
store sums[at, 4] = sum(exp2(load longer[at; (iota(column) below 10) + 32])) over column
store sums[at, 5] = sum(load x[at; before * 32 + iota(column)]) over column
store y[at; beyond] = load x[at; beyond] + 1.0
store z[at; any] = 2.0
if before >= 0 { store z[at; (before - 1) * 32 + iota(column)] = 3.0 }
)";
constexpr int64_t kWideRows = 3, kWideColumns = 20, kLongColumns = 52;

Example wideCall(int32_t before) {
  std::vector<double> x, longer, sums, y;
  const auto sumOf = [](const std::vector<double> &row, int64_t first, int64_t past) {
    double sum = 0;
    for (int64_t i = first; i < past; ++i)
      sum += std::exp2(row[static_cast<size_t>(i)]);
    return sum;
  };
  for (int64_t row = 0; row < kWideRows; ++row) {
    std::vector<double> own, ownLonger;
    for (int64_t i = 0; i < kLongColumns; ++i)
      ownLonger.push_back(static_cast<double>((row + i * 3) % 5) / 4);
    own.assign(ownLonger.begin() + 5, ownLonger.begin() + 5 + kWideColumns);
    const double all = sumOf(own, 0, kWideColumns);
    double plain = 0;
    for (const double each : own)
      plain += each;
    sums.insert(sums.end(),
                {all, all, all, sumOf(ownLonger, 0, kLongColumns), sumOf(ownLonger, 32, 42), before == 0 ? plain : 0});
    for (const double each : own)
      y.push_back(each + 1);
    x.insert(x.end(), own.begin(), own.end());
    longer.insert(longer.end(), ownLonger.begin(), ownLonger.end());
  }
  Example example;
  example.of = {"wide", DType::kF32, {}};
  const std::vector<double> z(static_cast<size_t>(kWideRows * kWideColumns), before == 1 ? 3 : 2);
  example.tensors = {{"x", DType::kF32, {kWideRows, kWideColumns}, false, x, 1},
                     {"longer", DType::kF32, {kWideRows, kLongColumns}, false, longer, 1},
                     {"sums", DType::kF32, {kWideRows, 6}, true, sums, 1},
                     {"y", DType::kF32, {kWideRows, kWideColumns}, true, y, 1},
                     {"z", DType::kF32, {kWideRows, kWideColumns}, true, z, 1}};
  example.scalars = {{"end", 40}, {"before", static_cast<double>(before)}};
  return example;
}

class ProgramColumns : public ProgramTest {
protected:
  void run(int32_t before, const std::string &checked) {
    const tools::EngineHandle engine = engineOf(settings());
    Result<ProgramHandle> program =
        ProgramRequest::ofText(kWide, {{"rows", "3"}}).create(engine.get(), accelerator().stream());
    ASSERT_TRUE(program) << program.status().toString();
    const Example example = wideCall(before);
    Result<ProgramCall> call = ProgramCall::make(accelerator(), program->get(), example);
    ASSERT_TRUE(call) << call.status().toString();
    const Status status = call->run();
    ASSERT_TRUE(status.isOk()) << status.toString();
    call->expectRight();
    ASSERT_TRUE(call->upload(example).isOk());
    EXPECT_EQ(call->check().toString(), checked);
    if (checked == "ok")
      call->expectRight();
  }
};

// The interpreter computes the same.
TEST_F(ProgramColumns, EndWithTheRow) { run(1, "ok"); }

// A kernel reads and writes nothing in front of a row. Checked mode says that the program does.
TEST_F(ProgramColumns, BeginWithTheRow) {
  run(0,
      R"(invalid argument: program:29:18: error: the store is outside of tensor 'z': 'place' is -32, and its extent is 20
if before >= 0 { store z[at; (before - 1) * 32 + iota(column)] = 3.0 }
                 ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
note: it is at z[0; -32] of z[3; 20], in the program tile = 0
note: it is the first one of 96 elements
 (hint: the call was checked with row_tile=16 warps=1))");
  run(-2,
      R"(invalid argument: program:26:25: error: the load is outside of tensor 'x': 'place' is -64, and its extent is 20
store sums[at, 5] = sum(load x[at; before * 32 + iota(column)]) over column
                        ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
note: it is at x[0; -64] of x[3; 20], in the program tile = 0
note: it is the first one of 96 elements
 (hint: the call was checked with row_tile=16 warps=1))");
}

} // namespace
} // namespace nsa::test
