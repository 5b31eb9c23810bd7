// What a call may leave out, name otherwise or get wrong: lengths, outputs, bindings. For every device.
#include "tests/harness/seed.h"
#include "tests/harness/session.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace nsa::test {
namespace {

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
  ASSERT_TRUE(other->runInto(small).isOk());
  checkOutputs(small);

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
  ASSERT_TRUE(launch->runInto(data).isOk());
  checkOut(data);
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
  ASSERT_TRUE(launch->runInto(data).isOk());
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
    ASSERT_TRUE(launch->runInto(data).isOk());
    checkOutputs(data);
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
  // Of the last sequence: moved to the left, the end of another one would give its rows to the one behind.
  checkMalformed(*session, data, damaged(&AttentionData::cuSeqlensQ, 4, 22), "cu_seqlens_q", gpu ? "sequence 3" : "[4]",
                 23, 63);
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

} // namespace
} // namespace nsa::test
