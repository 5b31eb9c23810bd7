// Integers that are divided by 0, and the least integer divided by -1, in tiles, in formulas and in scalars: no target
// ends there, and a division by what exists no more, which is 0, changes nothing.
#include "tests/harness/program_fixture.h"

#include <limits>

namespace nsa::test {
namespace {

// Quotients and remainders as f32. The tiles are wider and longer than the tensors.
constexpr const char *kDivided = R"(kernel divided

choice  row_tile = 16, warps = 1
grid    tile = ceildiv(rows, row_tile), 1, 1
threads 32 * warps

axis    row = row_tile, column = 8
tensor  a[row: rows; place: 5]: i32, b[row: rows; place: 5]: i32, c[row: rows]: i32, ends[one: 2]: f32
tensor  (quotient, rest, of_formulas)[row: rows; place: 5]: f32
scalar  rows, above, divisor: i32 // `above` is above the dividend: a call passes no least i32

let at    = tile * row_tile + iota(row) below rows
let place = iota(column) below 5
let x     = load a[at; place]
let y     = load b[at; place]
store quotient[at; place] = (x / y) as f32
store rest[at; place] = (x % y) as f32
store of_formulas[at; place] = (load c[at] / (at - 1) + load c[at] % (place - 2)) as f32
store ends[0 if tile == 0] = ((above - 1) / divisor) as f32
store ends[1 if tile == 0] = ((above - 1) % divisor) as f32
)";
constexpr int64_t kDividedRows = 3, kDividedColumns = 5;
constexpr int32_t kLeastI32 = std::numeric_limits<int32_t>::min();

int64_t divisorOf(int32_t x, int64_t y) { return y == 0 || (y == -1 && x == kLeastI32) ? 1 : y; }
double quotientOf(int32_t x, int64_t y) { return static_cast<double>(x / divisorOf(x, y)); }
double restOf(int32_t x, int64_t y) { return static_cast<double>(x % divisorOf(x, y)); }

Example dividedCall(int32_t dividend, int32_t divisor) {
  const std::vector<double> a = {7, -7, kLeastI32, kLeastI32, 0, 9, -9, kLeastI32, -1, 0, 100, -100, 3, kLeastI32, 1};
  const std::vector<double> b = {0, 0, -1, 0, 0, 2, 2, 1, -1, -1, -7, 7, 5, 2, -1};
  const std::vector<double> c = {kLeastI32, -5, 6};
  Example example;
  example.of = {"divided", DType::kF32, {}};
  const auto matrix = [](const char *name, bool isOutput, std::vector<double> values, DType dtype) {
    return ExampleTensor{name, dtype, {kDividedRows, kDividedColumns}, isOutput, std::move(values), 1};
  };
  std::vector<double> quotient, rest, ofFormulas;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<int32_t>(a[i]), z = static_cast<int32_t>(c[i / kDividedColumns]);
    const auto y = static_cast<int64_t>(b[i]), row = static_cast<int64_t>(i) / kDividedColumns;
    quotient.push_back(quotientOf(x, y));
    rest.push_back(restOf(x, y));
    ofFormulas.push_back(quotientOf(z, row - 1) + restOf(z, static_cast<int64_t>(i) % kDividedColumns - 2));
  }
  example.tensors = {matrix("a", false, a, DType::kI32),
                     matrix("b", false, b, DType::kI32),
                     {"c", DType::kI32, {kDividedRows}, false, c, kDividedRows},
                     {"ends", DType::kF32, {2}, true, {quotientOf(dividend, divisor), restOf(dividend, divisor)}, 1},
                     matrix("quotient", true, quotient, DType::kF32),
                     matrix("rest", true, rest, DType::kF32),
                     matrix("of_formulas", true, ofFormulas, DType::kF32)};
  example.scalars = {{"above", static_cast<double>(dividend) + 1}, {"divisor", static_cast<double>(divisor)}};
  return example;
}

class ProgramDivision : public ProgramTest {};

TEST_F(ProgramDivision, EndsNothing) {
  const tools::EngineHandle engine = engineOf(settings());
  Result<ProgramHandle> program =
      ProgramRequest::ofText(kDivided, {{"rows", "3"}}).create(engine.get(), accelerator().stream());
  ASSERT_TRUE(program) << program.status().toString();
  for (const auto &[dividend, divisor] : {std::pair(7, 0), {kLeastI32, -1}, {kLeastI32, 0}, {-7, 2}, {0, 0}, {7, -1}}) {
    SCOPED_TRACE(std::to_string(dividend) + " / " + std::to_string(divisor));
    Result<ProgramCall> call = ProgramCall::make(accelerator(), program->get(), dividedCall(dividend, divisor));
    ASSERT_TRUE(call) << call.status().toString();
    const Status status = call->run();
    ASSERT_TRUE(status.isOk()) << status.toString();
    call->expectRight();
  }
}

// Checked mode reports each division by its place, with its first element. It finds none that does not exist.
TEST_F(ProgramDivision, CheckedModeReportsIt) {
  const tools::EngineHandle engine = engineOf(settings());
  Result<ProgramHandle> program =
      ProgramRequest::ofText(kDivided, {{"rows", "3"}}).create(engine.get(), accelerator().stream());
  ASSERT_TRUE(program) << program.status().toString();
  Result<ProgramCall> call = ProgramCall::make(accelerator(), program->get(), dividedCall(7, 2));
  ASSERT_TRUE(call) << call.status().toString();
  EXPECT_EQ(call->check().toString(), R"(invalid argument: program:16:30: error: an integer is divided by 0
store quotient[at; place] = (x / y) as f32
                             ^~~~~
note: it is at row = 0, column = 0 of the tile, in the program tile = 0
note: it is the first one of 4 elements
program:17:26: error: an integer is divided by 0
store rest[at; place] = (x % y) as f32
                         ^~~~~
note: it is at row = 0, column = 0 of the tile, in the program tile = 0
note: it is the first one of 4 elements
program:18:33: error: an integer is divided by 0
store of_formulas[at; place] = (load c[at] / (at - 1) + load c[at] % (place - 2)) as f32
                                ^~~~~~~~~~~~~~~~~~~~~
note: it is at row = 1 of the tile, in the program tile = 0
program:18:57: error: an integer is divided by 0
store of_formulas[at; place] = (load c[at] / (at - 1) + load c[at] % (place - 2)) as f32
                                                        ^~~~~~~~~~~~~~~~~~~~~~~~
note: it is at row = 0, column = 2 of the tile, in the program tile = 0
note: it is the first one of 3 elements
 (hint: the call was checked with row_tile=16 warps=1))");
}

} // namespace
} // namespace nsa::test
