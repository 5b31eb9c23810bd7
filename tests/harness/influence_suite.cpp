// Which keys move which rows: exactly those that the mask allows, whatever stands in the others. For every device.
#include "tests/harness/seed.h"
#include "tests/harness/session.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace nsa::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The bytes of one output row, to compare runs bit for bit.
std::vector<double> row(const PlacedTensor &tensor, int64_t query, int64_t head) {
  std::vector<double> values;
  for (int64_t column = 0; column < std::max<int64_t>(1, tensor.extent(3)); ++column)
    values.push_back(tensor.get(0, query, head, column));
  return values;
}

// Changes one key after the other and looks which rows follow: exactly those that may attend it.
void checkInfluence(Session &session, const AttentionCase &shape, uint64_t seed) {
  SCOPED_TRACE(shape.text());
  std::mt19937_64 random(seed);
  AttentionData data = AttentionData::draw(shape, random);
  const Lengths lengths = shape.sequences[0];
  // Keys that no query attends are NaN so far: here they must be numbers, so that they could have an effect.
  for (int64_t key = 0; key < lengths.keys; ++key)
    for (int64_t head = 0; head < shape.kvHeads; ++head)
      if (std::isnan(data.k.get(0, key, head, 0))) {
        data.k.fillRow(0, key, head, 0.25f);
        data.v.fillRow(0, key, head, 0.25f);
      }
  ASSERT_TRUE(session.run(data).isOk());
  const PlacedTensor before = data.out;
  for (int64_t key = 0; key < lengths.keys; ++key) {
    AttentionData changed = data;
    for (int64_t head = 0; head < shape.kvHeads; ++head)
      changed.v.fillRow(0, key, head, 64.0f);
    ASSERT_TRUE(session.run(changed).isOk());
    for (int64_t query = 0; query < lengths.queries; ++query) {
      const int64_t position = lengths.keys - lengths.queries + query;
      const bool allowed = key <= position && (shape.op == Operator::kDense || key > position - shape.window);
      for (int64_t head = 0; head < int64_t{shape.kvHeads} * shape.group; ++head)
        ASSERT_EQ(row(changed.out, query, head) != row(before, query, head), allowed)
            << "key " << key << ", query " << query << " at position " << position << ", head " << head;
    }
  }
}

TEST_F(AttentionTest, EveryAllowedKeyMovesTheOutputAndNoOtherDoes) {
  const uint64_t seed = freshSeed();
  for (DType dtype : servedTypes()) {
    // A small scale keeps every weight large enough to be seen.
    AttentionCase shape{.name = "influence",
                        .op = Operator::kWindow,
                        .dtype = dtype,
                        .kvHeads = 1,
                        .group = 2,
                        .qkDim = 16,
                        .vDim = 16,
                        .window = 9,
                        .scale = 0.05f,
                        .sequences = {{37, 37}}};
    checkInfluence(*session, shape, seed);
    shape.sequences = {{11, 37}};
    checkInfluence(*session, shape, seed);
    shape.op = Operator::kDense;
    checkInfluence(*session, shape, seed);
  }
}

TEST_F(AttentionTest, ASingleQuerySeesEveryKeyOfItsPrefix) {
  // A top-left mask would show it key 0 only.
  for (DType dtype : servedTypes()) {
    AttentionCase shape{.name = "single_query",
                        .op = Operator::kDense,
                        .dtype = dtype,
                        .kvHeads = 1,
                        .group = 4,
                        .qkDim = 16,
                        .vDim = 16,
                        .scale = 0.05f,
                        .sequences = {{1, 70}}};
    checkInfluence(*session, shape, freshSeed());
  }
}

// One query's rows, when all that it may not attend is poison. Its neighbours do attend it.
void checkPoison(Session &session, const AttentionCase &shape, const std::vector<int64_t> &queries, uint64_t seed) {
  SCOPED_TRACE(shape.text());
  std::mt19937_64 random(seed);
  const AttentionData clean = AttentionData::draw(shape, random);
  const reference::AttentionResult expected = reference::attend(clean.problem());
  const Lengths lengths = shape.sequences[0];
  const reference::Tolerance tolerance = reference::toleranceOf(shape.dtype);
  for (const int64_t query : queries) {
    const int64_t position = lengths.keys - lengths.queries + query;
    for (float poison : {kNan, kInfinity, -kInfinity}) {
      AttentionData data = clean;
      for (int64_t key = 0; key < lengths.keys; ++key) {
        if (key <= position && (shape.op == Operator::kDense || key > position - shape.window))
          continue;
        for (int64_t head = 0; head < shape.kvHeads; ++head) {
          data.k.fillRow(0, key, head, poison);
          data.v.fillRow(0, key, head, poison);
        }
      }
      const Status status = session.run(data);
      ASSERT_TRUE(status.isOk()) << status.toString();
      reference::Attention problem = clean.problem();
      problem.sequences = reference::singleRows(problem.sequences, std::array{query});
      const reference::ErrorReport error = reference::compare(problem, expected, data.out.view(), data.lse.view());
      ASSERT_TRUE(error.within(tolerance))
          << "query " << query << ", poison " << poison << ": " << error.toString(tolerance);
    }
  }
}

TEST_F(AttentionTest, PoisonInDisallowedKeysNeverReachesARow) {
  std::mt19937_64 random(freshSeed());
  for (Operator op : {Operator::kWindow, Operator::kDense})
    for (DType dtype : servedTypes()) {
      AttentionCase shape{.name = "poison",
                          .op = op,
                          .dtype = dtype,
                          .kvHeads = 2,
                          .group = servedGroup(3),
                          .qkDim = 40,
                          .vDim = 24,
                          .window = 21,
                          .sequences = {{150, 170}}};
      // Positions at and around the edges of tiles, and one anywhere.
      const auto anywhere = static_cast<int64_t>(random() % 150);
      checkPoison(*session, shape, {0, 1, 31, 32, 63, 64, 149, anywhere}, random());
      // Rows whose first and last tiles are several apart, as a window has them; some heads are a block's whole rows.
      shape.group = 64;
      shape.kvHeads = 1;
      shape.qkDim = shape.vDim = 72;
      shape.window = 200;
      shape.sequences = {{40, 430}};
      checkPoison(*session, shape, {0, 2, 3, 39}, random());
    }
}

TEST_F(AttentionTest, PoisonInOneSequenceStaysInIt) {
  std::mt19937_64 random(freshSeed());
  for (Layout layout : {Layout::kPacked, Layout::kDense}) {
    AttentionCase shape{.name = "other_sequences",
                        .op = Operator::kDense,
                        .dtype = DType::kBf16,
                        .layout = layout,
                        .kvHeads = 1,
                        .group = 2,
                        .qkDim = 32,
                        .vDim = 32,
                        .sequences = {{45, 45}, {45, 45}, {45, 45}}};
    AttentionData data = AttentionData::draw(shape, random);
    const reference::AttentionResult expected = reference::attend(data.problem());
    reference::Attention problem = data.problem();
    const reference::Sequence middle = problem.sequences[1];
    for (int64_t time = middle.keyBegin; time < middle.keyBegin + middle.keys; ++time) {
      data.k.fillRow(middle.keyBatch, time, 0, kNan);
      data.v.fillRow(middle.keyBatch, time, 0, kInfinity);
    }
    const Status status = session->run(data);
    ASSERT_TRUE(status.isOk()) << status.toString();
    problem.sequences.erase(problem.sequences.begin() + 1);
    const reference::ErrorReport error = reference::compare(problem, expected, data.out.view(), data.lse.view());
    EXPECT_TRUE(error.within(reference::toleranceOf(shape.dtype)))
        << error.toString(reference::toleranceOf(shape.dtype));
  }
}

} // namespace
} // namespace nsa::test
