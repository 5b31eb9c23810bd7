// Outputs of 16 bits are the nearest value of their type to what was computed in fp32, and of two that are as near the
// even one (docs/specification.md 2), to the bit: where sums of neighbouring values are exact, the right bits are known
// without a reference. For every device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace nsa::test {
namespace {

using T = TensorName;

// A value, and how many of four terms are its upper neighbour: the mean lies so many quarters of a unit above it.
struct Quarters {
  uint16_t low;
  int above;

  uint16_t term(int64_t i) const { return static_cast<uint16_t>(low + (i % 4 < above)); }
  uint16_t nearest() const { return static_cast<uint16_t>(low + (above > 2 || (above == 2 && low % 2 != 0))); }
};

// Normal values of both signs whose sums are in range; of fp16 also those below its least normal number, which fp32
// has.
Quarters drawQuarters(DType dtype, std::mt19937_64 &random) {
  const int mantissaBits = dtype == DType::kBf16 ? 7 : 10;
  const uint64_t exponent = dtype == DType::kBf16 ? 64 + random() % 128 : random() % 29;
  // No zeros: the sign of a sum that is zero is not specified.
  const uint64_t mantissa = std::max<uint64_t>(random() % (uint64_t{1} << mantissaBits), exponent == 0);
  const uint64_t sign = random() % 2;
  return {static_cast<uint16_t>(sign << 15 | exponent << mantissaBits | mantissa), static_cast<int>(random() % 5)};
}

// Element `column` of a row of 16-bit values.
void setBits(std::span<std::byte> row, int64_t column, uint16_t bits) {
  std::memcpy(row.data() + column * 2, &bits, sizeof bits);
}

class Rounding : public OperatorTest, public ::testing::WithParamInterface<DType> {
protected:
  static DType dtype() { return GetParam(); }
  static std::span<std::byte> rowOf(OperatorInputs &inputs, T name, int64_t time, int64_t head) {
    return headOf(inputs.spec, inputs.tensors.at(name), 0, time, head);
  }
  // That the row has the nearest values, and that of those halfway some went up and some went down.
  void expectNearest(std::span<const std::byte> row, const std::vector<Quarters> &columns) {
    for (size_t column = 0; column < columns.size(); ++column) {
      uint16_t bits = 0;
      std::memcpy(&bits, row.data() + column * 2, sizeof bits);
      const Quarters &wanted = columns[column];
      ASSERT_EQ(bits, wanted.nearest()) << std::hex << wanted.low << " and " << std::dec << wanted.above
                                        << " quarters, column " << column;
      halfwayUp += wanted.above == 2 && wanted.nearest() != wanted.low;
      halfwayDown += wanted.above == 2 && wanted.nearest() == wanted.low;
    }
  }
  std::vector<Quarters> drawRow(int64_t columns) {
    std::vector<Quarters> row;
    for (int64_t column = 0; column < columns; ++column)
      row.push_back(drawQuarters(dtype(), random));
    return row;
  }
  void TearDown() override {
    if (IsSkipped() || HasFailure())
      return;
    EXPECT_GT(halfwayUp, 20);
    EXPECT_GT(halfwayDown, 20);
  }

  std::mt19937_64 random{freshSeed()};
  int halfwayUp = 0, halfwayDown = 0;
};
INSTANTIATE_TEST_SUITE_P(Types, Rounding, ::testing::Values(DType::kBf16, DType::kF16),
                         [](const auto &info) { return std::string(dtypeName(info.param)); });

TEST_P(Rounding, OfAMeanIsToNearestEven) {
  Spec spec = smallSpec(Operator::kCompress, dtype());
  spec.cmpBlock = spec.cmpStride = 4;
  constexpr int64_t kBlocks = 21;
  OperatorInputs inputs = tools::drawInputs(spec, {{4 * kBlocks}, {4 * kBlocks}}, random());
  for (const auto &[name, result] : {std::pair(T::kKCmp, T::kKComp), std::pair(T::kVCmp, T::kVComp)}) {
    const int64_t columns = inputs[name].shape.back();
    std::vector<std::vector<Quarters>> rows;
    for (int64_t block = 0; block < kBlocks; ++block)
      for (int64_t head = 0; head < spec.kvHeads; ++head) {
        rows.push_back(drawRow(columns));
        for (int64_t term = 0; term < 4; ++term)
          for (int64_t column = 0; column < columns; ++column)
            setBits(rowOf(inputs, name, 4 * block + term, head), column,
                    rows.back()[static_cast<size_t>(column)].term(term));
      }
    const NamedTensors outputs = run(inputs);
    for (int64_t block = 0; block < kBlocks; ++block)
      for (int64_t head = 0; head < spec.kvHeads; ++head)
        expectNearest(headOf(spec, outputs.at(result), 0, block, head),
                      rows[static_cast<size_t>(block * spec.kvHeads + head)]);
  }
}

// A query of zero gives its four keys the same weight, exactly one before the division by their sum.
TEST_P(Rounding, OfAttentionIsToNearestEven) {
  for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp, Operator::kSel}) {
    Spec spec = smallSpec(op, dtype());
    spec.layout = Layout::kPacked; // compressed keys of a prefix
    const int64_t tokens = op == Operator::kCmp ? spec.cmpBlock + 3 * spec.cmpStride : 4;
    OperatorInputs inputs = tools::drawInputs(spec, {{1}, {tokens}}, random());
    const T queries = inputs.tensors.contains(T::kQCmp) ? T::kQCmp : T::kQ;
    fill(spec.dtype, inputs.tensors.at(queries).bytes, 0);
    const T values = op == Operator::kCmp ? T::kVComp : op == Operator::kSel ? T::kVSel : T::kVWin;
    ASSERT_EQ(inputs[values].shape[0], 4);
    std::vector<std::string> variants = {session->variant()};
    if (session->isCuda() && hasVariants(op) && variants.front() == kTileTemplate)
      variants.push_back("row_attention"); // a GPU template
    for (const std::string &variant : variants) {
      SCOPED_TRACE(std::string(operatorName(op)) + " by " + variant);
      useVariant(variant);
      const tools::PlanHandle made = plan(spec, inputs.maxima);
      for (int repeat = 0; repeat < 4; ++repeat) {
        std::vector<std::vector<Quarters>> rows;
        for (int64_t head = 0; head < spec.kvHeads; ++head) {
          rows.push_back(drawRow(spec.vDim));
          for (int64_t term = 0; term < 4; ++term)
            for (int64_t column = 0; column < spec.vDim; ++column)
              setBits(rowOf(inputs, values, term, head), column, rows.back()[static_cast<size_t>(column)].term(term));
        }
        const NamedTensors outputs = run(made, inputs);
        for (int64_t head = 0; head < spec.queryHeads; ++head)
          expectNearest(headOf(spec, outputs.at(T::kOut), 0, 0, head), rows[static_cast<size_t>(head / spec.group())]);
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

// Gates that are quarters weigh a branch's value and its upper neighbour in another branch.
TEST_P(Rounding, OfACombinationIsToNearestEven) {
  const Spec spec = smallSpec(Operator::kCombine, dtype());
  constexpr int64_t kQueries = 33;
  constexpr std::array kBranches = {T::kOCmp, T::kOSel, T::kOWin};
  OperatorInputs inputs = tools::drawInputs(spec, {{kQueries}, {kQueries}}, random());
  std::vector<std::vector<Quarters>> rows;
  for (int64_t query = 0; query < kQueries; ++query)
    for (int64_t head = 0; head < spec.queryHeads; ++head) {
      std::vector<Quarters> row = drawRow(spec.vDim);
      // The gates are a row's, so all of its columns have as many quarters.
      const size_t low = random() % 3, high = (low + 1 + random() % 2) % 3;
      const int above = row.front().above;
      const std::span<std::byte> gates = rowOf(inputs, T::kGates, query, head);
      fill(spec.dtype, gates, 0);
      fill(spec.dtype, gates.subspan(2 * low, 2), (4 - above) / 4.0);
      fill(spec.dtype, gates.subspan(2 * high, 2), above / 4.0);
      for (size_t column = 0; column < row.size(); ++column) {
        row[column].above = above;
        setBits(rowOf(inputs, kBranches[low], query, head), static_cast<int64_t>(column), row[column].low);
        setBits(rowOf(inputs, kBranches[high], query, head), static_cast<int64_t>(column),
                static_cast<uint16_t>(row[column].low + 1));
      }
      rows.push_back(std::move(row));
    }
  const NamedTensors outputs = run(inputs);
  for (int64_t query = 0; query < kQueries; ++query)
    for (int64_t head = 0; head < spec.queryHeads; ++head)
      expectNearest(headOf(spec, outputs.at(T::kOut), 0, query, head),
                    rows[static_cast<size_t>(query * spec.queryHeads + head)]);
}

} // namespace
} // namespace nsa::test
