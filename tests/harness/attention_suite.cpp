// The numeric tests that every device must pass; compiled into the executable of each (NSA_TEST_DEVICE).
#include "tests/harness/seed.h"
#include "tests/harness/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

namespace nsa::test {

const char *const kTestDevice = NSA_TEST_DEVICE;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class AttentionTable : public AttentionTest, public ::testing::WithParamInterface<AttentionCase> {};

TEST_P(AttentionTable, MatchesTheReference) {
  std::mt19937_64 random(freshSeed());
  AttentionData data = AttentionData::draw(GetParam(), random);
  check(data);
}

INSTANTIATE_TEST_SUITE_P(Table, AttentionTable, ::testing::ValuesIn(attentionTable()),
                         [](const auto &info) { return info.param.name; });

TEST_F(AttentionTest, DrawnCasesMatchTheReference) {
  std::mt19937_64 random(freshSeed());
  // A GPU machine has the cores for longer references.
  const DrawLimits limits =
      session->isCuda() ? DrawLimits{.maxTokens = maxTokens(4096), .maxPairWork = 2e9} : DrawLimits{};
  const int cases = session->isCuda() ? 48 : 32;
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    const AttentionCase drawn = drawAttentionCase(random, limits);
    AttentionData data = AttentionData::draw(drawn, random);
    check(data);
  }
}

TEST_F(AttentionTest, TheRowVariantMatchesTheReference) {
  if (!session->isCuda())
    return; // it is a GPU template
  useVariant("row_attention");
  std::mt19937_64 random(freshSeed());
  const DrawLimits limits{.maxTokens = maxTokens(600), .maxPairWork = 5e8};
  for (int i = 0; i < 24 && !HasFailure(); ++i) {
    AttentionData data = AttentionData::draw(drawAttentionCase(random, limits), random);
    check(data);
  }
}

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
  for (DType dtype : {DType::kBf16, DType::kF32}) {
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
  AttentionCase shape{.name = "single_query",
                      .op = Operator::kDense,
                      .dtype = DType::kBf16,
                      .kvHeads = 1,
                      .group = 4,
                      .qkDim = 16,
                      .vDim = 16,
                      .scale = 0.05f,
                      .sequences = {{1, 70}}};
  checkInfluence(*session, shape, freshSeed());
}

TEST_F(AttentionTest, PoisonInDisallowedKeysNeverReachesARow) {
  const uint64_t seed = freshSeed();
  std::mt19937_64 random(seed);
  for (Operator op : {Operator::kWindow, Operator::kDense}) {
    for (DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
      AttentionCase shape{.name = "poison",
                          .op = op,
                          .dtype = dtype,
                          .kvHeads = 2,
                          .group = 3,
                          .qkDim = 40,
                          .vDim = 24,
                          .window = 21,
                          .sequences = {{150, 170}}};
      const AttentionData clean = AttentionData::draw(shape, random);
      const reference::AttentionResult expected = reference::attend(clean.problem());
      // Positions at and around the edges of tiles, and one anywhere.
      for (int64_t query : {int64_t{0}, int64_t{1}, int64_t{31}, int64_t{32}, int64_t{63}, int64_t{64}, int64_t{149},
                            static_cast<int64_t>(random() % 150)}) {
        const int64_t position = 20 + query;
        for (float poison : {kNan, kInfinity, -kInfinity}) {
          AttentionData data = clean;
          for (int64_t key = 0; key < 170; ++key) {
            if (key <= position && (op == Operator::kDense || key > position - shape.window))
              continue;
            for (int64_t head = 0; head < shape.kvHeads; ++head) {
              data.k.fillRow(0, key, head, poison);
              data.v.fillRow(0, key, head, poison);
            }
          }
          const Status status = session->run(data);
          ASSERT_TRUE(status.isOk()) << status.toString();
          // Only this query's rows are meant; its neighbours do attend poison.
          reference::Attention problem = clean.problem();
          problem.sequences = {
              {.batch = 0, .queryBegin = query, .queries = 1, .keyBegin = 0, .keys = position + 1, .firstRow = query}};
          const reference::Tolerance tolerance = reference::toleranceOf(dtype);
          const reference::ErrorReport error = reference::compare(problem, expected, data.out.view(), data.lse.view());
          ASSERT_TRUE(error.within(tolerance))
              << shape.text() << ", query " << query << ", poison " << poison << ": " << error.toString(tolerance);
        }
      }
    }
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
      data.k.fillRow(middle.batch, time, 0, kNan);
      data.v.fillRow(middle.batch, time, 0, kInfinity);
    }
    const Status status = session->run(data);
    ASSERT_TRUE(status.isOk()) << status.toString();
    problem.sequences.erase(problem.sequences.begin() + 1);
    const reference::ErrorReport error = reference::compare(problem, expected, data.out.view(), data.lse.view());
    EXPECT_TRUE(error.within(reference::toleranceOf(shape.dtype)))
        << error.toString(reference::toleranceOf(shape.dtype));
  }
}

TEST_F(AttentionTest, AWindowOfOneIsTheOwnValue) {
  // One token too wide would mix in the one before.
  std::mt19937_64 random(freshSeed());
  for (DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
    AttentionCase shape{.name = "window_one",
                        .op = Operator::kWindow,
                        .dtype = dtype,
                        .kvHeads = 2,
                        .group = 2,
                        .qkDim = 24,
                        .vDim = 24,
                        .window = 1,
                        .sequences = {{66, 80}}};
    AttentionData data = AttentionData::draw(shape, random);
    check(data);
    for (int64_t query = 0; query < 66; ++query)
      for (int64_t head = 0; head < 4; ++head)
        for (int64_t column = 0; column < 24; ++column)
          // The one weight is divided by itself: at most a rounding away from one.
          ASSERT_NEAR(data.out.get(0, query, head, column), data.v.get(0, 14 + query, head / 2, column),
                      1e-6 * std::fabs(data.v.get(0, 14 + query, head / 2, column)))
              << "query " << query;
  }
}

TEST_F(AttentionTest, AWindowOfTheWholeSequenceIsDense) {
  std::mt19937_64 random(freshSeed());
  AttentionCase shape{.name = "wide_window",
                      .op = Operator::kWindow,
                      .dtype = DType::kF32,
                      .kvHeads = 1,
                      .group = 3,
                      .qkDim = 32,
                      .vDim = 32,
                      .window = 97,
                      .sequences = {{60, 97}}};
  AttentionData windowed = AttentionData::draw(shape, random);
  check(windowed);
  AttentionData dense = windowed;
  dense.shape.op = Operator::kDense;
  check(dense);
  AttentionData enormous = windowed;
  enormous.shape.window = std::numeric_limits<int32_t>::max();
  check(enormous);
}

TEST_F(AttentionTest, TheLseIsTheNaturalLogarithm) {
  std::mt19937_64 random(freshSeed());
  AttentionCase shape{.name = "natural_lse",
                      .op = Operator::kDense,
                      .dtype = DType::kF32,
                      .kvHeads = 1,
                      .group = 1,
                      .qkDim = 8,
                      .vDim = 8,
                      .sequences = {{50, 50}}};
  AttentionData data = AttentionData::draw(shape, random);
  for (int64_t query = 0; query < 50; ++query)
    data.q.fillRow(0, query, 0, 0.0f); // equal scores: the sum counts the keys
  check(data);
  for (int64_t query = 0; query < 50; ++query)
    EXPECT_NEAR(data.lse.get(0, query, 0, 0), std::log(query + 1.0), 1e-5);
}

TEST_F(AttentionTest, TheDefaultScaleComesFromTheQueryHeadSize) {
  std::mt19937_64 random(freshSeed());
  AttentionCase shape{.name = "scale_default",
                      .op = Operator::kDense,
                      .dtype = DType::kF32,
                      .kvHeads = 1,
                      .group = 1,
                      .qkDim = 16,
                      .vDim = 64,
                      .sequences = {{40, 40}}};
  AttentionData data = AttentionData::draw(shape, random);
  check(data);
  AttentionData same = data;
  same.shape.scale = 0.25f; // 1/sqrt(16)
  check(same);
  for (int64_t query = 0; query < 40; ++query)
    ASSERT_EQ(row(data.out, query, 0), row(same.out, query, 0));
}

TEST_F(AttentionTest, LargeScoresNeitherOverflowNorVanish) {
  std::mt19937_64 random(freshSeed());
  for (float size : {1000.0f, -1000.0f}) {
    AttentionCase shape{.name = "large_scores",
                        .op = Operator::kDense,
                        .dtype = DType::kBf16,
                        .kvHeads = 1,
                        .group = 2,
                        .qkDim = 64,
                        .vDim = 32,
                        .sequences = {{90, 90}}};
    AttentionData data = AttentionData::draw(shape, random);
    // All scores of a row are 8 * size: exp of them is infinite or zero in fp32.
    for (int64_t key = 0; key < 90; ++key)
      data.k.fillRow(0, key, 0, 1.0f);
    for (int64_t query = 0; query < 90; ++query)
      for (int64_t head = 0; head < 2; ++head)
        data.q.fillRow(0, query, head, size);
    // The LSE itself is 8000 here, where one unit in the last place of fp32 is already 5e-4.
    const Status status = session->run(data);
    ASSERT_TRUE(status.isOk()) << status.toString();
    const reference::Attention problem = data.problem();
    const reference::ErrorReport error = reference::compare(problem, reference::attend(problem), data.out.view(), {});
    EXPECT_TRUE(error.within(reference::toleranceOf(shape.dtype)))
        << error.toString(reference::toleranceOf(shape.dtype));
  }
}

TEST_F(AttentionTest, NoQueriesOrNoKeysWriteNothing) {
  std::mt19937_64 random(freshSeed());
  for (Lengths lengths : {Lengths{0, 0}, Lengths{0, 30}}) {
    for (Layout layout : {Layout::kDense, Layout::kPacked}) {
      AttentionCase shape{.name = "empty",
                          .op = Operator::kWindow,
                          .dtype = DType::kBf16,
                          .layout = layout,
                          .kvHeads = 2,
                          .group = 2,
                          .qkDim = 16,
                          .vDim = 16,
                          .window = 8,
                          .sequences = {lengths, lengths},
                          .unusedRows = layout == Layout::kPacked ? 3 : 0};
      AttentionData data = AttentionData::draw(shape, random);
      const PlacedTensor out = data.out, lse = data.lse;
      const Status status = session->run(data);
      ASSERT_TRUE(status.isOk()) << shape.text() << ": " << status.toString();
      EXPECT_EQ(data.out.bytes(), out.bytes());
      EXPECT_EQ(data.lse.bytes(), lse.bytes());
    }
  }
}

TEST_F(AttentionTest, APlanServesEveryLengthUpToItsMaxima) {
  std::mt19937_64 random(freshSeed());
  AttentionCase largest{.name = "maxima",
                        .op = Operator::kWindow,
                        .dtype = DType::kBf16,
                        .kvHeads = 1,
                        .group = 4,
                        .qkDim = 32,
                        .vDim = 32,
                        .window = 30,
                        .sequences = {{100, 200}, {100, 200}}};
  AttentionData big = AttentionData::draw(largest, random);
  Result<Launch> launch = session->prepare(big);
  ASSERT_TRUE(launch) << launch.status().toString();
  AttentionCase smaller = largest;
  smaller.sequences = {{33, 77}};
  AttentionData small = AttentionData::draw(smaller, random);
  Result<Launch> other = session->prepare(small);
  ASSERT_TRUE(other) << other.status().toString();
  std::swap(launch->plan, other->plan); // the small tensors under the plan of the large ones
  std::swap(launch->workspace, other->workspace);
  ASSERT_TRUE(other->enqueue().isOk());
  ASSERT_TRUE(other->finish().isOk());
  ASSERT_TRUE(other->download(small).isOk());
  const reference::Attention problem = small.problem();
  const reference::ErrorReport error =
      reference::compare(problem, reference::attend(problem), small.out.view(), small.lse.view());
  EXPECT_TRUE(error.within(reference::toleranceOf(DType::kBf16)))
      << error.toString(reference::toleranceOf(DType::kBf16));

  EXPECT_EQ(launch->enqueue().code(), ErrorCode::kInvalidArgument)
      << "the large tensors under the plan of the small ones";
}

TEST_F(AttentionTest, TheLseMayBeLeftOut) {
  std::mt19937_64 random(freshSeed());
  AttentionCase shape{.name = "without_lse",
                      .op = Operator::kWindow,
                      .dtype = DType::kBf16,
                      .kvHeads = 2,
                      .group = 2,
                      .qkDim = 32,
                      .vDim = 32,
                      .window = 20,
                      .sequences = {{61, 61}}};
  AttentionData data = AttentionData::draw(shape, random);
  Result<Launch> launch = session->prepare(data);
  ASSERT_TRUE(launch) << launch.status().toString();
  launch->tensors[4].size = 0;
  ASSERT_TRUE(launch->enqueue().isOk());
  ASSERT_TRUE(launch->finish().isOk());
  ASSERT_TRUE(launch->download(data).isOk());
  const reference::Attention problem = data.problem();
  const reference::ErrorReport error = reference::compare(problem, reference::attend(problem), data.out.view(), {});
  EXPECT_TRUE(error.within(reference::toleranceOf(shape.dtype))) << error.toString(reference::toleranceOf(shape.dtype));
  EXPECT_TRUE(std::all_of(data.lse.bytes().begin(), data.lse.bytes().end(),
                          [](std::byte byte) { return byte == std::byte{0xff}; }));
}

TEST_F(AttentionTest, TheWindowsOwnNamesAndTheSharedOnesMeanTheSame) {
  std::mt19937_64 random(freshSeed());
  AttentionCase shape{.name = "names",
                      .op = Operator::kWindow,
                      .dtype = DType::kF16,
                      .kvHeads = 1,
                      .group = 2,
                      .qkDim = 16,
                      .vDim = 16,
                      .window = 12,
                      .sequences = {{40, 40}}};
  AttentionData data = AttentionData::draw(shape, random);
  check(data);
  const std::vector<std::byte> expected = data.out.bytes();
  Result<Launch> launch = session->prepare(data);
  ASSERT_TRUE(launch) << launch.status().toString();
  launch->names[1] = NSA_K_WIN;
  launch->names[2] = NSA_V_WIN;
  data.out.poison();
  ASSERT_TRUE(launch->upload(data).isOk());
  ASSERT_TRUE(launch->enqueue().isOk());
  ASSERT_TRUE(launch->finish().isOk());
  ASSERT_TRUE(launch->download(data).isOk());
  EXPECT_EQ(data.out.bytes(), expected);
}

TEST_F(AttentionTest, OneListOfLengthsStandsForBoth) {
  std::mt19937_64 random(freshSeed());
  for (size_t left : {size_t{5}, size_t{6}}) {
    AttentionCase shape{.name = "one_list",
                        .op = Operator::kDense,
                        .dtype = DType::kBf16,
                        .layout = Layout::kPacked,
                        .kvHeads = 1,
                        .group = 2,
                        .qkDim = 16,
                        .vDim = 16,
                        .sequences = {{20, 20}, {0, 0}, {33, 33}}};
    AttentionData data = AttentionData::draw(shape, random);
    Result<Launch> launch = session->prepare(data);
    ASSERT_TRUE(launch) << launch.status().toString();
    launch->tensors[left].size = 0;
    ASSERT_TRUE(launch->enqueue().isOk());
    ASSERT_TRUE(launch->finish().isOk());
    ASSERT_TRUE(launch->download(data).isOk());
    const reference::Attention problem = data.problem();
    const reference::ErrorReport error =
        reference::compare(problem, reference::attend(problem), data.out.view(), data.lse.view());
    EXPECT_TRUE(error.within(reference::toleranceOf(shape.dtype)))
        << error.toString(reference::toleranceOf(shape.dtype));
  }
}

// Runs with broken lengths: the error must name `place`, sequences that are fine may be served, the rest stays poison.
void checkMalformed(Session &session, AttentionData data, const std::function<void(AttentionData &)> &damage,
                    const std::string &field, const std::string &place, int64_t badFrom, int64_t badTo) {
  damage(data);
  Result<Launch> launch = session.prepare(data);
  ASSERT_TRUE(launch) << launch.status().toString();
  Status status = launch->enqueue();
  if (status.isOk())
    status = launch->finish();
  else
    EXPECT_FALSE(session.isCuda()) << "a GPU's lengths are not the host's to read";
  ASSERT_FALSE(status.isOk()) << field << " was accepted";
  const std::string text = status.toString();
  EXPECT_NE(text.find(field), std::string::npos) << text;
  EXPECT_NE(text.find(place), std::string::npos) << text;
  ASSERT_TRUE(launch->finish().isOk()) << "the status word was not cleared";
  ASSERT_TRUE(launch->download(data).isOk());
  for (int64_t query = badFrom; query < badTo; ++query)
    EXPECT_TRUE(std::isnan(data.out.get(0, query, 0, 0))) << "query " << query << " of a bad sequence was written";
}

TEST_F(AttentionTest, MalformedLengthsAreReportedWithTheirPlaceAndWriteNothing) {
  std::mt19937_64 random(freshSeed());
  // The first and the last sequence are long, so that one wrong offset makes one sequence bad and not its neighbour.
  AttentionCase shape{.name = "malformed",
                      .op = Operator::kWindow,
                      .dtype = DType::kBf16,
                      .layout = Layout::kPacked,
                      .kvHeads = 1,
                      .group = 2,
                      .qkDim = 16,
                      .vDim = 16,
                      .window = 9,
                      .sequences = {{10, 300}, {5, 60}, {8, 60}, {40, 200}}};
  const AttentionData data = AttentionData::draw(shape, random);
  // The host names the entry, a kernel the sequence.
  const bool gpu = session->isCuda();
  auto damaged = [&](std::vector<int32_t> AttentionData::*list, size_t entry, int32_t value) {
    return [=](AttentionData &d) { (d.*list)[entry] = value; };
  };
  checkMalformed(*session, data, damaged(&AttentionData::cuSeqlensQ, 0, 1), "cu_seqlens_q", gpu ? "sequence 0" : "[0]",
                 0, 10);
  checkMalformed(*session, data, damaged(&AttentionData::cuSeqlensK, 0, 3), "cu_seqlens_k", gpu ? "sequence 0" : "[0]",
                 0, 10);
  checkMalformed(*session, data, damaged(&AttentionData::cuSeqlensQ, 2, 9), "cu_seqlens_q", gpu ? "sequence 1" : "[2]",
                 10, 15);
  checkMalformed(*session, data, damaged(&AttentionData::cuSeqlensQ, 4, 1000000), "cu_seqlens_q",
                 gpu ? "sequence 3" : "[4]", 23, 63);
  checkMalformed(*session, data, damaged(&AttentionData::cuSeqlensK, 2, 299), "cu_seqlens_k",
                 gpu ? "sequence 1" : "[2]", 10, 15);
  checkMalformed(*session, data, damaged(&AttentionData::cuSeqlensK, 4, 0x7fffffff), "cu_seqlens_k",
                 gpu ? "sequence 3" : "[4]", 23, 63);
  checkMalformed(*session, data, damaged(&AttentionData::cuSeqlensK, 3, 362), gpu ? "queries" : "seqlen_q",
                 "sequence 2", 15,
                 23); // T_q > T
  checkMalformed(*session, data, damaged(&AttentionData::cuSeqlensQ, 3, 60), "max_seqlen_q", "sequence 2", 15, 60);
  checkMalformed(
      *session, data,
      [](AttentionData &d) {
        d.cuSeqlensK[1] = 10;
        d.cuSeqlensK[2] = 320;
      },
      "max_seqlen_k", "sequence 1", 10, 15);
}

TEST_F(AttentionTest, RepeatsGiveTheSameBits) {
  std::mt19937_64 random(freshSeed());
  for (DType dtype : {DType::kBf16, DType::kF32}) {
    const int64_t tokens = session->isCuda() ? maxTokens(1500) : 200;
    AttentionCase shape{.name = "repeats",
                        .op = Operator::kDense,
                        .dtype = dtype,
                        .kvHeads = 2,
                        .group = 4,
                        .qkDim = 64,
                        .vDim = 64,
                        .sequences = {{tokens, tokens}}};
    AttentionData data = AttentionData::draw(shape, random);
    check(data);
    const std::vector<std::byte> out = data.out.bytes(), lse = data.lse.bytes();
    Result<Launch> launch = session->prepare(data);
    ASSERT_TRUE(launch) << launch.status().toString();
    for (int repeat = 0; repeat < 100; ++repeat) {
      data.out.poison();
      data.lse.poison();
      ASSERT_TRUE(launch->upload(data).isOk());
      ASSERT_TRUE(launch->enqueue().isOk());
      ASSERT_TRUE(launch->finish().isOk());
      ASSERT_TRUE(launch->download(data).isOk());
      ASSERT_EQ(data.out.bytes(), out) << "repeat " << repeat;
      ASSERT_EQ(data.lse.bytes(), lse) << "repeat " << repeat;
    }
  }
}

} // namespace
} // namespace nsa::test
