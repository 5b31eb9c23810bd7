// Decode against the reference of the forward over the same history: fed in one piece, in pieces of any size, or token
// by token, contiguous or in pages, every row, list and count must be what the forward has there. For every device.
#include "runtime/base/key_splits.h"
#include "tests/harness/decode_fixture.h"
#include "tests/harness/seed.h"
#include "tools/reference/block_list.h"
#include "tools/reference/elements.h"
#include "tools/reference/selection.h"
#include "tools/support/operator_check.h"

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

namespace nsa::test {
namespace {

using T = TensorName;

class HostTensorLists {
public:
  HostTensorLists(const tools::HostTensor &tensor, int64_t slots)
      : values(reinterpret_cast<const int32_t *>(tensor.bytes.data()),
               reinterpret_cast<const int32_t *>(tensor.bytes.data()) + tensor.elements()),
        slots(slots) {}
  int64_t count() const { return static_cast<int64_t>(values.size()) / slots; }
  int64_t differences(const HostTensorLists &other) const {
    int64_t found = 0;
    for (size_t first = 0; first < values.size(); first += static_cast<size_t>(slots))
      found += !std::equal(values.begin() + static_cast<std::ptrdiff_t>(first),
                           values.begin() + static_cast<std::ptrdiff_t>(first) + slots,
                           other.values.begin() + static_cast<std::ptrdiff_t>(first));
    return found;
  }

private:
  std::vector<int32_t> values;
  int64_t slots;
};

class DecodeTypes : public DecodeTest, public ::testing::WithParamInterface<std::tuple<DType, bool, bool>> {};

TEST_P(DecodeTypes, TokenByTokenIsTheForward) {
  const auto &[dtype, isPaged, isPacked] = GetParam();
  const OperatorInputs history = tools::drawInputs(smallSpec(dtype), {{150, 150}, {150, 150}}, freshSeed());
  decode(history,
         {.room = 160, .pageSize = isPaged ? 32 : 0, .layout = isPacked ? Layout::kPacked : Layout::kDense, .seed = 7},
         evenly(150, 1));
}

INSTANTIATE_TEST_SUITE_P(All, DecodeTypes,
                         ::testing::Combine(::testing::ValuesIn(servedTypes()), ::testing::Bool(), ::testing::Bool()),
                         [](const auto &info) {
                           return std::string(dtypeName(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "_paged" : "_contiguous") +
                                  (std::get<2>(info.param) ? "_packed" : "_dense");
                         });

TEST_F(DecodeTest, APromptInOnePieceIsTheForward) {
  const OperatorInputs history = tools::drawInputs(smallSpec(DType::kBf16), {{333}, {333}}, freshSeed());
  decode(history, {.room = 333, .mostNew = 333}, evenly(333, 333));
}

TEST_F(DecodeTest, APromptInChunksAndThenTokensAreTheForward) {
  // Chunks of any size, as no multiple of a block: what is compressed goes on where it stood.
  const OperatorInputs history = tools::drawInputs(smallSpec(DType::kF16), {{300, 300}, {300, 300}}, freshSeed());
  std::mt19937_64 random(freshSeed());
  for (const int32_t page : {0, 48})
    decode(history, {.room = 320, .mostNew = 100, .pageSize = page, .seed = random()}, [&](const DecodeRun &run) {
      const int64_t most = run.length(0) < 200 ? 100 : 8;
      const auto count = static_cast<int64_t>(1 + random() % static_cast<uint64_t>(most));
      return std::vector<int64_t>(2, std::min(count, 300 - run.length(0)));
    });
}

TEST_F(DecodeTest, UnequalSequencesGrowEachByItsOwn) {
  Spec spec = smallSpec(DType::kBf16);
  spec.layout = Layout::kPacked;
  const std::vector<int64_t> lengths = {70, 7, 211, 1, 128};
  const OperatorInputs history = tools::drawInputs(spec, {lengths, lengths}, freshSeed());
  std::mt19937_64 random(freshSeed());
  for (const int32_t page : {0, 16})
    decode(history, {.room = 224, .mostNew = 30, .pageSize = page, .layout = Layout::kPacked, .seed = random()},
           [&](const DecodeRun &run) {
             std::vector<int64_t> counts;
             for (size_t s = 0; s < lengths.size(); ++s) // a chunk, some tokens, or none
               counts.push_back(std::min(lengths[s] - run.length(s),
                                         static_cast<int64_t>(random() % 4 ? random() % 3 : random() % 31)));
             if (std::reduce(counts.begin(), counts.end()) == 0)
               for (size_t s = 0; s < lengths.size(); ++s)
                 counts[s] = std::min<int64_t>(1, lengths[s] - run.length(s));
             return counts;
           });
}

// The rows of a workspace are a call's queries: those of a short sequence stand where a long one's stood before, whose
// scores reach further.
TEST_F(DecodeTest, AShortSequenceFollowsALongOneInItsRows) {
  Spec spec = smallSpec(DType::kBf16);
  spec.layout = Layout::kPacked;
  const std::vector<int64_t> lengths = {150, 100};
  const OperatorInputs history = tools::drawInputs(spec, {lengths, lengths}, freshSeed());
  constexpr int64_t kMostNew = 4;
  decode(history, {.room = 160, .mostNew = kMostNew, .layout = Layout::kPacked}, [&](const DecodeRun &run) {
    const size_t turn = run.length(0) < lengths[0] ? 0 : 1;
    std::vector<int64_t> counts(lengths.size());
    counts[turn] = std::min(kMostNew, lengths[turn] - run.length(turn));
    return counts;
  });
}

TEST_F(DecodeTest, EveryKindOfCompressionGoesOn) {
  for (const CmpKind kind : {CmpKind::kLinear, CmpKind::kMlp}) {
    Spec spec = smallSpec(DType::kBf16);
    spec.cmpKind = kind;
    spec.mlpHidden = 24;
    const OperatorInputs history = tools::drawInputs(spec, {{90, 90}, {90, 90}}, freshSeed());
    decode(history, {.room = 96, .mostNew = 5}, evenly(90, 5));
  }
}

// Nothing forced but the own block, and compressed blocks that are longer than three of those that are selected: the
// next one, which is not whole yet, would move what is chosen.
TEST_F(DecodeTest, TheNextCompressedBlockMovesNoList) {
  Spec spec = smallSpec(DType::kBf16);
  spec.cmpBlock = 48;
  spec.initBlocks = 0;
  spec.localBlocks = 1;
  spec.selCount = 3;
  const OperatorInputs history = tools::drawInputs(spec, {{150, 150}, {150, 150}}, freshSeed());
  decode(history, {.room = 160, .mostNew = 2}, evenly(150, 2));
}

// A compressed key that every head of the group scores with -inf weighs nothing, and does not meet the rows of a tile
// that hold no head: those are zeros, and zero times infinity is NaN.
TEST_F(DecodeTest, AKeyWhoseScoreIsMinusInfinityWeighsNothing) {
  constexpr int64_t kTokens = 150, kSpoilt = 60;
  Spec spec = smallSpec(DType::kBf16);
  spec.selCount = 6; // of ten blocks, so that those beside the key are chosen too
  OperatorInputs history = tools::drawInputs(spec, {{kTokens}, {kTokens}}, freshSeed());
  const auto setFirst = [&](T name, int64_t time, double value) {
    tools::HostTensor &tensor = history.tensors.at(name);
    for (int64_t head = 0; head < tensor.shape[2]; ++head)
      reference::storeElement(spec.dtype, headOf(spec, tensor, 0, time, head).data(), 0, value);
  };
  for (int64_t token = 0; token < kTokens; ++token)
    setFirst(T::kQ, token, 1);
  setFirst(T::kKCmp, kSpoilt, -std::numeric_limits<double>::infinity());
  ASSERT_NO_FATAL_FAILURE(feed(history, {.room = 160, .mostNew = 2}, evenly(kTokens, 2)));
  // Rows of infinity have no relative error: all but the compressed ones.
  NamedTensors outputs = collected;
  ASSERT_EQ(outputs.erase(T::kKComp), 1u);
  const tools::OperatorCheck checked = tools::checkOperator(history, outputs);
  EXPECT_TRUE(checked.within()) << checked.toString();
}

TEST_F(DecodeTest, OneCacheServesBothBranches) {
  const OperatorInputs history = tools::drawInputs(smallSpec(DType::kBf16), {{120}, {120}}, freshSeed());
  OperatorInputs shared = history;
  for (const auto &[sel, win, both] : {std::array{T::kKSel, T::kKWin, T::kK}, std::array{T::kVSel, T::kVWin, T::kV}}) {
    auto node = shared.tensors.extract(sel);
    node.key() = both;
    shared.tensors.insert(std::move(node));
    shared.tensors.erase(win);
  }
  decode(shared, {.room = 128, .mostNew = 3, .pageSize = 64, .isShared = true}, evenly(120, 3));
}

TEST_F(DecodeTest, BranchesThatAreOffNeedNoCache) {
  for (int32_t branches = 1; branches < kAllBranches; ++branches) {
    Spec spec = smallSpec(servedTypes().back());
    spec.branches = branches;
    SCOPED_TRACE(branches);
    const OperatorInputs history = tools::drawInputs(spec, {{100}, {100}}, freshSeed());
    decode(history, {.room = 112, .mostNew = 7, .pageSize = branches % 2 ? 16 : 0}, evenly(100, 7));
  }
}

// So many blocks that the first of each segment are found before the first of all: of two whole ones and a beginning.
constexpr int64_t kManyTokens = 2300, kManyNew = 8;
Spec manyBlocks() {
  Spec spec = smallSpec(DType::kBf16);
  spec.cmpBlock = 4;
  spec.cmpStride = 2;
  spec.selBlock = 4;
  spec.selCount = 20;
  return spec;
}

TEST_F(DecodeTest, ManyBlocksAreRankedInSegments) {
  Spec spec = manyBlocks();
  const OperatorInputs history =
      tools::drawInputs(spec, {{kManyTokens, kManyTokens}, {kManyTokens, kManyTokens}}, freshSeed());
  spec.op = Operator::kDecode;
  ASSERT_EQ(rankSegment(spec, {2, 2 * kManyNew, kManyNew, kManyTokens}), 256);
  decode(history, {.room = kManyTokens, .mostNew = kManyNew}, evenly(kManyTokens, kManyNew));
}

// The same where all blocks tie: of each segment and of all, the lower one is first.
TEST_F(DecodeTest, BlocksThatTieAreRankedByNumberAcrossSegments) {
  OperatorInputs history =
      tools::drawInputs(manyBlocks(), {{kManyTokens, kManyTokens}, {kManyTokens, kManyTokens}}, freshSeed());
  const Spec &spec = history.spec;
  fill(spec.dtype, history.tensors.at(T::kKCmp).bytes, 0.5);
  decode(history, {.room = kManyTokens, .mostNew = kManyNew}, evenly(kManyTokens, kManyNew));
  if (HasFailure())
    return;
  const std::vector<reference::Sequence> sequences = tools::sequencesOf(history);
  const reference::BlockLists lists = reference::readBlockLists(
      sequences, tools::listView(spec, collected.at(T::kBlockList)), spec.kvHeads, spec.selCount);
  for (const reference::Sequence &sequence : sequences)
    for (int64_t position = 0; position < kManyTokens; ++position) {
      // Those that overlap fewer compressed blocks are chosen anyway: the first one and the newest.
      const std::vector<double> scores(static_cast<size_t>(position / spec.selBlock + 1), 1);
      std::vector<int32_t> expected = reference::chooseBlocks(scores, spec);
      expected.resize(static_cast<size_t>(spec.selCount), -1);
      for (int64_t head = 0; head < spec.kvHeads; ++head)
        ASSERT_TRUE(std::ranges::equal(lists.at(sequence.firstRow + position, head), expected))
            << "position " << position << ", head " << head;
    }
}

// Lists of any length up to the longest, by `choose` alone, and by `choose` out of what `rank` keeps of segments.
TEST_F(DecodeTest, LongListsAreTheForward) {
  for (const auto &[count, tokens, segment] :
       {std::tuple<int32_t, int64_t, int64_t>{65, 400, 0}, {97, 520, 0}, {128, 600, 0}, {128, kManyTokens, 512}}) {
    SCOPED_TRACE(testing::Message() << count << " of the blocks of " << tokens << " tokens");
    Spec spec = manyBlocks();
    spec.selCount = count;
    const OperatorInputs history = tools::drawInputs(spec, {{tokens}, {tokens}}, freshSeed());
    spec.op = Operator::kDecode;
    ASSERT_EQ(rankSegment(spec, {1, kManyNew, kManyNew, tokens}), segment);
    decode(history, {.room = tokens, .mostNew = kManyNew}, evenly(tokens, kManyNew));
    if (HasFailure())
      return;
  }
}

// The lists of the forward pass over the same history, by another set of kernels.
TEST_F(DecodeTest, TwoThousandPositionsFromTheFirstAreThoseOfPrefill) {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.queryHeads = 4;
  spec.kvHeads = 2;
  spec.qkDim = 48;
  spec.vDim = 32;
  constexpr int64_t kTokens = 2000;
  const OperatorInputs history = tools::drawInputs(spec, {{kTokens}, {kTokens}}, freshSeed());
  Result<tools::PlanHandle> plan =
      tools::createPlan(session->engine(), spec, history.maxima, session->accelerator().stream());
  ASSERT_TRUE(plan.isOk()) << plan.status().toString();
  Result<tools::RunResult> prefill = tools::runOnce(session->accelerator(), plan->get(), history, {T::kBlockList});
  ASSERT_TRUE(prefill.isOk()) << prefill.status().toString();
  const HostTensorLists expected(prefill->outputs.at(T::kBlockList), spec.selCount);
  for (const int32_t page : {0, 128}) {
    decode(history, {.room = kTokens, .pageSize = page, .seed = freshSeed()}, evenly(kTokens, 1));
    if (HasFailure())
      return;
    // `decode` has found every list right, so those that differ are ties.
    const HostTensorLists lists(collected.at(T::kBlockList), spec.selCount);
    const int64_t ties = lists.differences(expected);
    std::printf("%s: %lld of %lld lists differ from prefill's, all by ties\n", page ? "paged" : "contiguous",
                static_cast<long long>(ties), static_cast<long long>(lists.count()));
    EXPECT_LE(ties, std::max<int64_t>(1, lists.count() / 10000)); // docs/specification.md 5
  }
}

// docs/specification.md 10: the seed's bench after its 64 steps.
TEST_F(DecodeTest, ReadsAreTheGoldenOnes) {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.queryHeads = 8;
  spec.kvHeads = 2;
  spec.qkDim = spec.vDim = 32;
  const std::pair<int64_t, int32_t> golden[] = {{576, 1123}, {1088, 1603}, {2112, 1667}, {4160, 1795}};
  for (const auto &[tokens, reads] : golden) {
    const OperatorInputs history = tools::drawInputs(spec, {{tokens}, {tokens}}, freshSeed());
    Result<DecodeRun> run =
        DecodeRun::open(session->accelerator(), history, {.room = tokens, .mostNew = tokens - 64}, {T::kReads});
    ASSERT_TRUE(run.isOk()) << run.status().toString();
    Result<tools::PlanHandle> plan =
        tools::createPlan(session->engine(), run->spec(), run->maxima(), session->accelerator().stream());
    ASSERT_TRUE(plan.isOk()) << plan.status().toString();
    ASSERT_TRUE(run->allocateWorkspace(plan->get()).isOk());
    ASSERT_TRUE(run->step(plan->get(), {tokens - 64}).isOk());
    for (int i = 0; i < 64; ++i)
      ASSERT_TRUE(run->step(plan->get(), {1}).isOk());
    const NamedTensors outputs = std::move(*run->collected());
    const auto *counted = reinterpret_cast<const int32_t *>(outputs.at(T::kReads).bytes.data());
    for (int64_t head = 0; head < 2; ++head)
      EXPECT_EQ(counted[(tokens - 1) * 2 + head], reads) << "at " << tokens;
  }
}

// One branch's NaN is its own: its programs' sums and those of the others meet in one product. Branches of one program
// each, and of several.
class DecodeNan : public DecodeTest, public ::testing::WithParamInterface<bool> {
protected:
  enum class Row : uint8_t { kSame, kNan, kOther };
  using Expected = std::function<Row(T output, size_t sequence, int64_t position, int64_t head)>;
  static constexpr int64_t kTokens = 230, kBatch = 2;
  static constexpr size_t kSpoilt = 1; // the sequence
  static constexpr int64_t kHead = 1;  // the kv head

  static Spec geometry() {
    Spec spec = smallSpec(DType::kBf16);
    if (GetParam()) { // more keys than one program should have, in each branch
      spec.cmpBlock = 8;
      spec.cmpStride = 4;
      spec.selCount = 8;
      spec.window = 128;
    }
    return spec;
  }

  void feedAll(const OperatorInputs &history) {
    constexpr int64_t kNew = 5;
    const int64_t room = GetParam() ? 608 : 240;
    Spec spec = history.spec;
    spec.op = Operator::kDecode;
    for (const int64_t programs : KeySplits::make(spec, {kBatch, kBatch * kNew, kNew, room}).counts)
      ASSERT_EQ(programs > 1, GetParam());
    feed(history, {.room = room, .mostNew = kNew, .pageSize = GetParam() ? 16 : 0, .seed = 3}, evenly(kTokens, kNew));
  }

  // The rows of every output: the bytes of the clean run, or NaN in all columns.
  void compare(const Spec &spec, const NamedTensors &clean, const Expected &expected) {
    int64_t spoilt = 0;
    for (const T name : {T::kOut, T::kOCmp, T::kOSel, T::kOWin, T::kLseCmp, T::kLseSel, T::kLseWin, T::kReads}) {
      const tools::HostTensor &after = collected.at(name);
      const int64_t group = name == T::kReads ? spec.group() : 1; // a row for each kv head
      for (size_t s = 0; s < kBatch; ++s)
        for (int64_t position = 0; position < kTokens; ++position)
          for (int64_t head = 0; head < spec.queryHeads; head += group) {
            const auto now = headOf(spec, after, static_cast<int64_t>(s), position, head / group);
            const auto before = headOf(spec, clean.at(name), static_cast<int64_t>(s), position, head / group);
            const Row row = expected(name, s, position, head);
            SCOPED_TRACE(std::string(tensorName(name)) + " of sequence " + std::to_string(s) + ", token " +
                         std::to_string(position) + ", head " + std::to_string(head));
            if (row == Row::kSame)
              ASSERT_TRUE(std::ranges::equal(now, before));
            for (int64_t i = 0; row == Row::kNan && i < static_cast<int64_t>(now.size()) / dtypeBytes(after.dtype); ++i)
              ASSERT_TRUE(std::isnan(reference::loadElement(after.dtype, now.data(), i))) << "column " << i;
            spoilt += row == Row::kNan;
          }
    }
    EXPECT_GT(spoilt, 0);
  }
};
INSTANTIATE_TEST_SUITE_P(Programs, DecodeNan, ::testing::Bool(),
                         [](const auto &info) { return info.param ? "Several" : "One"; });

TEST_P(DecodeNan, OfATokenIsInTheRowsThatAttendItInItsBranchOnly) {
  const Spec spec = geometry();
  const OperatorInputs history = tools::drawInputs(spec, {{kTokens, kTokens}, {kTokens, kTokens}}, freshSeed());
  ASSERT_NO_FATAL_FAILURE(feedAll(history));
  const NamedTensors clean = collected;
  const std::vector<reference::Sequence> sequences = tools::sequencesOf(history);
  const reference::BlockLists lists =
      reference::readBlockLists(sequences, tools::listView(spec, clean.at(T::kBlockList)), spec.kvHeads, spec.selCount);
  constexpr T kOutputs[] = {T::kOCmp, T::kOSel, T::kOWin}, kSums[] = {T::kLseCmp, T::kLseSel, T::kLseWin};
  struct Case {
    T name;
    size_t branch;
    bool isKey;
  };
  for (const auto &[name, branch, isKey] : {Case{T::kVSel, 1, false}, Case{T::kKSel, 1, true}, Case{T::kVWin, 2, false},
                                            Case{T::kKWin, 2, true}, Case{T::kVCmp, 0, false}, Case{T::kKCmp, 0, true}})
    // The first token is all that its query attends, and there is no compressed block yet; the other is one of many.
    for (const int64_t token : {int64_t{0}, int64_t{101}}) {
      SCOPED_TRACE("NaN in " + std::string(tensorName(name)) + " of token " + std::to_string(token));
      OperatorInputs spoilt = history;
      fill(spec.dtype, headOf(spec, spoilt.tensors.at(name), kSpoilt, token, kHead),
           std::numeric_limits<double>::quiet_NaN());
      ASSERT_NO_FATAL_FAILURE(feedAll(spoilt));
      compare(spec, clean, [&, branch = branch, isKey = isKey](T output, size_t s, int64_t position, int64_t head) {
        const int64_t kvHead = head / spec.group();
        if (output == T::kReads || s != kSpoilt || kvHead != kHead)
          return Row::kSame;
        const auto list = lists.at(sequences[s].firstRow + position, kvHead);
        const bool attends = mayAttend(spec, list, position, token)[branch];
        if (attends && (output == T::kOut || output == kOutputs[branch] || (isKey && output == kSums[branch])))
          return Row::kNan;
        // Scores of NaN select other blocks.
        const bool selectsOthers = attends && isKey && branch == 0;
        return selectsOthers && (output == T::kOSel || output == T::kLseSel) ? Row::kOther : Row::kSame;
      });
      if (HasFatalFailure())
        return;
      if (branch == 0 && isKey) { // which are attended as ever
        const tools::OperatorCheck checked =
            tools::checkOperator(history, {{T::kOSel, collected.at(T::kOSel)},
                                           {T::kLseSel, collected.at(T::kLseSel)},
                                           {T::kBlockList, collected.at(T::kBlockList)}});
        for (const tools::OutputCheck &output : checked.outputs)
          EXPECT_TRUE(output.within || output.name == tensorName(T::kBlockList)) << output.name << ": " << output.text;
        const tools::OperatorCheck ofLists =
            tools::checkOperator(spoilt, {{T::kBlockList, collected.at(T::kBlockList)}});
        for (const tools::OutputCheck &output : ofLists.outputs)
          EXPECT_TRUE(output.within) << output.name << ": " << output.text;
      }
    }
}

TEST_P(DecodeNan, OfAGateIsInItsRowOfTheOutputOnly) {
  constexpr std::pair<int64_t, int64_t> kPlaces[] = {{2, 1}, {150, 3}}; // token, query head; the first has no cmp yet
  for (const Gate gate : {Gate::kValue, Gate::kSigmoid, Gate::kSoftmax}) {
    Spec spec = geometry();
    spec.gate = gate;
    const OperatorInputs history = tools::drawInputs(spec, {{kTokens, kTokens}, {kTokens, kTokens}}, freshSeed());
    ASSERT_NO_FATAL_FAILURE(feedAll(history));
    const NamedTensors clean = collected;
    for (int64_t branch = 0; branch < 3; ++branch) {
      SCOPED_TRACE(std::string(gateName(gate)) + " of branch " + std::to_string(branch));
      OperatorInputs spoilt = history;
      for (const auto &[token, head] : kPlaces)
        reference::storeElement(spec.dtype, headOf(spec, spoilt.tensors.at(T::kGates), kSpoilt, token, head).data(),
                                branch, std::numeric_limits<double>::quiet_NaN());
      ASSERT_NO_FATAL_FAILURE(feedAll(spoilt));
      compare(spec, clean, [&](T output, size_t s, int64_t position, int64_t head) {
        const bool isSpoilt = s == kSpoilt && std::ranges::find(kPlaces, std::pair(position, head)) != kPlaces + 2;
        return isSpoilt && output == T::kOut ? Row::kNan : Row::kSame;
      });
      if (HasFatalFailure())
        return;
    }
  }
}

// A gate of 0 makes a branch weigh nothing, but a NaN times 0 is one (docs/specification.md 8). What the branch does
// not attend, and what another branch's gate of 0 shuts out, is as ever.
TEST_P(DecodeNan, MeetsAGateOfZero) {
  const Spec spec = geometry();
  OperatorInputs history = tools::drawInputs(spec, {{kTokens, kTokens}, {kTokens, kTokens}}, freshSeed());
  constexpr int64_t kToken = 40;
  for (int64_t token = 0; token < kTokens; ++token) // cmp, sel or win in turns
    for (int64_t head = 0; head < spec.queryHeads; ++head)
      reference::storeElement(spec.dtype, headOf(spec, history.tensors.at(T::kGates), kSpoilt, token, head).data(),
                              token % 3, 0);
  ASSERT_NO_FATAL_FAILURE(feedAll(history));
  const NamedTensors clean = collected;
  const std::vector<reference::Sequence> sequences = tools::sequencesOf(history);
  const reference::BlockLists lists =
      reference::readBlockLists(sequences, tools::listView(spec, clean.at(T::kBlockList)), spec.kvHeads, spec.selCount);
  fill(spec.dtype, headOf(spec, history.tensors.at(T::kVSel), kSpoilt, kToken, kHead),
       std::numeric_limits<double>::quiet_NaN());
  ASSERT_NO_FATAL_FAILURE(feedAll(history));
  compare(spec, clean, [&](T output, size_t s, int64_t position, int64_t head) {
    const int64_t kvHead = head / spec.group();
    const bool attends = s == kSpoilt && kvHead == kHead &&
                         mayAttend(spec, lists.at(sequences[s].firstRow + position, kvHead), position, kToken)[1];
    return attends && (output == T::kOut || output == T::kOSel) ? Row::kNan : Row::kSame;
  });
}

} // namespace
} // namespace nsa::test
