// State of a decoding batch that breaks a rule, as only a kernel may find it: lengths in device memory that are
// negative or beyond the cache's room, entries of the page table that name no page, offsets of new tokens. The status
// word says so, the sequence stays as it was, its neighbours decode as ever, and nothing around any buffer is written.
// For every device.
#include "runtime/base/signature.h"
#include "tests/harness/decode_fixture.h"
#include "tests/harness/seed.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>

namespace nsa::test {
namespace {

using T = TensorName;

constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();

struct DecodeState {
  const char *name;
  int32_t pageSize;
  Layout layout;
};

class BadDecode : public DecodeTest, public ::testing::WithParamInterface<DecodeState> {
protected:
  // A compressed block becomes whole with the last step.
  static constexpr int64_t kBatch = 3, kTokens = 72, kRoom = 80, kPage = 16, kPages = kRoom / kPage;
  static constexpr int32_t kNew = 2;                                   // tokens of a step
  static constexpr size_t kFirst = 0, kMiddle = 1, kLast = kBatch - 1; // sequences

  void SetUp() override {
    DecodeTest::SetUp();
    if (IsSkipped() || HasFatalFailure())
      return;
    const std::vector<int64_t> lengths(kBatch, kTokens);
    history = tools::drawInputs(smallSpec(DType::kBf16), {lengths, lengths}, freshSeed());
  }
  bool isPaged() const { return GetParam().pageSize != 0; }

  // A cache with all but the last tokens in it, which are fed and not run.
  std::optional<DecodeRun> openFed() {
    const CacheShape shape = {
        .room = kRoom, .mostNew = kNew, .pageSize = GetParam().pageSize, .layout = GetParam().layout, .seed = 5};
    Result<DecodeRun> run =
        DecodeRun::open(session->accelerator(), history, shape, tools::allOutputs(Operator::kDecode));
    EXPECT_TRUE(run.isOk()) << run.status().toString();
    if (!run)
      return std::nullopt;
    if (!plan) {
      Result<tools::PlanHandle> made =
          tools::createPlan(session->engine(), run->spec(), run->maxima(), session->accelerator().stream());
      EXPECT_TRUE(made.isOk()) << made.status().toString();
      if (!made)
        return std::nullopt;
      plan = std::move(*made);
    }
    EXPECT_TRUE(run->allocateWorkspace(plan.get()).isOk());
    while (run->length(0) < kTokens - kNew) {
      const std::vector<int64_t> counts(kBatch, std::min<int64_t>(kNew, kTokens - kNew - run->length(0)));
      const Status status = run->step(plan.get(), counts);
      EXPECT_TRUE(status.isOk()) << status.toString();
      if (!status.isOk())
        return std::nullopt;
    }
    const Status fed = run->feed(std::vector<int64_t>(kBatch, kNew));
    EXPECT_TRUE(fed.isOk()) << fed.toString();
    return std::move(*run);
  }

  // All that a step may write. The lengths are no operand: `cache_sequences` raises them.
  static NamedTensors snapshot(const DecodeRun &run) {
    NamedTensors taken;
    const auto take = [&](T name) {
      Result<tools::HostTensor> tensor = run.download(name);
      EXPECT_TRUE(tensor.isOk()) << tensor.status().toString();
      taken.emplace(name, std::move(*tensor));
    };
    for (const Operand &operand : operandsOf(Operator::kDecode))
      if (operand.isWritten() && takes(run.spec(), operand.name))
        take(operand.name);
    take(T::kCacheSeqlens);
    return taken;
  }

  // Enqueues, and gives what the host or the kernels say of it.
  Status runStep(DecodeRun &run) {
    const Status enqueued = run.enqueue(plan.get());
    const Status left = tools::toStatus(nsa_plan_status(plan.get(), session->accelerator().stream(), nullptr));
    EXPECT_TRUE(enqueued.isOk() || !session->isCuda()) << "a GPU's state is not the host's to read";
    const Status guards = run.checkGuards();
    EXPECT_TRUE(guards.isOk()) << guards.toString();
    return enqueued.isOk() ? left : enqueued;
  }

  // Whose an entry of a tensor's leading dimension is: of the batch, of the new tokens, or a page. None: it is no
  // sequence's.
  std::optional<size_t> ownerOf(T name, int64_t entry) const {
    const Lead lead = tensorRule(name).lead;
    if (isPaged() && (lead == Lead::kCache || lead == Lead::kCacheBlocks)) {
      const auto found = std::ranges::find(table, entry);
      return found == table.end() ? std::nullopt : std::optional<size_t>((found - table.begin()) / kPages);
    }
    const bool isPackedRow = lead == Lead::kQueries && GetParam().layout == Layout::kPacked;
    return static_cast<size_t>(isPackedRow ? entry / kNew : entry);
  }

  // What `expected` has of each entry; entries of sequences that it gives nothing for are not looked at.
  using Expected = std::function<const NamedTensors *(std::optional<size_t> owner)>;
  void expectEntries(const NamedTensors &after, const Expected &expected) const {
    for (const auto &[name, tensor] : after) {
      const auto bytes = tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]);
      for (int64_t entry = 0; entry < tensor.shape[0]; ++entry) {
        const std::optional<size_t> owner = ownerOf(name, entry);
        const size_t at = static_cast<size_t>(entry) * bytes;
        if (const NamedTensors *other = expected(owner))
          EXPECT_EQ(std::memcmp(tensor.bytes.data() + at, other->at(name).bytes.data() + at, bytes), 0)
              << tensorName(name) << ", entry " << entry << ", of sequence "
              << (owner ? std::to_string(*owner) : "none");
      }
    }
  }

  // What a step leaves in which nothing is wrong.
  NamedTensors runRight() {
    std::optional<DecodeRun> run = openFed();
    if (!run)
      return {};
    if (isPaged()) {
      Result<tools::HostTensor> read = run->download(T::kBlockTable);
      EXPECT_TRUE(read.isOk()) << read.status().toString();
      table.resize(kBatch * kPages);
      std::memcpy(table.data(), read->bytes.data(), table.size() * sizeof(int32_t));
    }
    const Status status = runStep(*run);
    EXPECT_TRUE(status.isOk()) << status.toString();
    return snapshot(*run);
  }

  // An entry of a tensor of the decoding state.
  struct Change {
    T name;
    int64_t index;
    int32_t value;
  };

  // A step with all of the changes: one of the bad sequences is reported with its rule, and nothing of any of them
  // moves. Their neighbours decode as ever on a GPU; on the CPU the host refuses the whole step.
  void checkStep(const NamedTensors &right, const std::set<size_t> &bad, const std::vector<Change> &changes,
                 std::string_view rule = "") {
    std::string told;
    for (const Change &change : changes)
      told += std::string(tensorName(change.name)) + "[" + std::to_string(change.index) +
              "] = " + std::to_string(change.value) + " ";
    SCOPED_TRACE(told);
    std::optional<DecodeRun> run = openFed();
    ASSERT_TRUE(run && !HasFailure());
    for (const Change &change : changes) {
      void *place = static_cast<int32_t *>(run->tensor(change.name).data) + change.index;
      ASSERT_TRUE(session->accelerator().upload(place, &change.value, sizeof change.value).isOk());
    }
    const NamedTensors before = snapshot(*run);
    const Status status = runStep(*run);
    ASSERT_FALSE(status.isOk()) << "it was accepted";
    EXPECT_EQ(status.code(), session->isCuda() ? ErrorCode::kDeviceError : ErrorCode::kInvalidArgument);
    const std::string text = status.toString();
    // Of offsets that decrease the next sequence has more tokens than the plan was made for.
    EXPECT_TRUE(std::ranges::any_of(changes, [&](const Change &change) {
      return text.find(tensorName(change.name)) != std::string::npos ||
             (change.name == T::kCuSeqlensQ && text.find("max_seqlen_q") != std::string::npos);
    })) << text;
    EXPECT_NE(text.find(rule), std::string::npos) << text;
    if (session->isCuda())
      EXPECT_TRUE(std::ranges::any_of(bad, [&](size_t sequence) {
        return text.find("sequence " + std::to_string(sequence)) != std::string::npos;
      })) << text;
    expectEntries(snapshot(*run), [&](std::optional<size_t> owner) {
      return session->isCuda() && owner && !bad.contains(*owner) ? &right : &before;
    });
  }

  // Each value alone.
  void checkBad(size_t bad, T name, int64_t index, const std::vector<int32_t> &values, std::string_view rule = "") {
    const NamedTensors right = runRight();
    for (const int32_t value : values) {
      checkStep(right, {bad}, {{name, index, value}}, rule);
      ASSERT_FALSE(HasFailure());
    }
  }

  OperatorInputs history;
  tools::PlanHandle plan;
  std::vector<int32_t> table;
};

constexpr DecodeState kContiguous = {"contiguous", 0, Layout::kDense},
                      kContiguousPacked = {"contiguous_packed", 0, Layout::kPacked},
                      kPaged = {"paged", 16, Layout::kDense}, kPagedPacked = {"paged_packed", 16, Layout::kPacked};
std::string nameOf(const ::testing::TestParamInfo<DecodeState> &info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(States, BadDecode, ::testing::Values(kContiguous, kContiguousPacked, kPaged, kPagedPacked),
                         nameOf);

TEST_P(BadDecode, ALengthThatIsNoneLeavesItsSequence) {
  checkBad(kMiddle, T::kCacheSeqlens, kMiddle, {-1, kLeast, kRoom + 1, kMost, kMost - 1},
           "must be from 0 to the cache's room");
}

// Lengths that the cache may have, and that leave no room for the new tokens.
TEST_P(BadDecode, AFullCacheLeavesItsSequence) {
  checkBad(kMiddle, T::kCacheSeqlens, kMiddle, {kRoom, static_cast<int32_t>(kRoom) - kNew + 1});
}

TEST_P(BadDecode, TwoBadSequencesOfAStepAreLeft) {
  checkStep(runRight(), {kFirst, kLast},
            {{T::kCacheSeqlens, kFirst, -1}, {T::kCacheSeqlens, kLast, static_cast<int32_t>(kRoom)}});
}

// Any length that the cache has room for is one, whatever the other sequences' are.
TEST_P(BadDecode, AnotherLengthIsItsSequencesOwn) {
  const NamedTensors right = runRight();
  for (const int32_t length : {0, 1, 40, static_cast<int32_t>(kTokens)}) {
    SCOPED_TRACE(length);
    std::optional<DecodeRun> run = openFed();
    ASSERT_TRUE(run && !HasFailure());
    auto *place = static_cast<int32_t *>(run->tensor(T::kCacheSeqlens).data) + kMiddle;
    ASSERT_TRUE(session->accelerator().upload(place, &length, sizeof length).isOk());
    const NamedTensors before = snapshot(*run);
    const Status status = runStep(*run);
    ASSERT_TRUE(status.isOk()) << status.toString();
    int32_t after = 0;
    ASSERT_TRUE(session->accelerator().download(&after, place, sizeof after).isOk());
    EXPECT_EQ(after, length + kNew);
    expectEntries(snapshot(*run), [&](std::optional<size_t> owner) {
      return !owner ? &before : *owner == kMiddle ? nullptr : &right;
    });
  }
}

class BadPages : public BadDecode {};
INSTANTIATE_TEST_SUITE_P(States, BadPages, ::testing::Values(kPaged, kPagedPacked), nameOf);

TEST_P(BadPages, APageThatIsNoneLeavesItsSequence) {
  constexpr int32_t kOfPools = kBatch * kPages + 3; // three belong to no sequence
  for (const int64_t page : {int64_t{0}, kPages / 2, (kTokens - 1) / kPage})
    checkBad(kMiddle, T::kBlockTable, static_cast<int64_t>(kMiddle) * kPages + page,
             {-1, kLeast, kOfPools, kOfPools + 1, kMost});
}

class BadOffsets : public BadDecode {
protected:
  static inline const int32_t kRows = static_cast<int32_t>(kBatch) * kNew;
};
INSTANTIATE_TEST_SUITE_P(States, BadOffsets, ::testing::Values(kContiguousPacked, kPagedPacked), nameOf);

// The end of the last one: no other sequence gets its rows.
TEST_P(BadOffsets, AnEndThatIsNoneLeavesItsSequence) {
  checkBad(kLast, T::kCuSeqlensQ, kBatch, {kRows - kNew - 1, -1, kLeast, kRows + 1, kMost});
}

TEST_P(BadOffsets, AFirstThatIsNotZeroLeavesItsSequence) {
  checkBad(kFirst, T::kCuSeqlensQ, 0, {1, kNew, kNew + 1, -1, kLeast, kRows + 1, kMost});
}

// The last sequence has as many tokens as it may, one of them behind all rows. The one before has one too many.
TEST_P(BadOffsets, OnesBehindTheRowsLeaveTheirSequences) {
  checkStep(runRight(), {kMiddle, kLast},
            {{T::kCuSeqlensQ, kLast, kRows + 1 - kNew}, {T::kCuSeqlensQ, kBatch, kRows + 1}});
}

// An offset in the middle is the end of one sequence and the beginning of the next: both are bad.
TEST_P(BadOffsets, AMiddleOneThatIsNoneLeavesBothItsSequences) {
  const NamedTensors right = runRight();
  for (const int32_t value : {kNew - 1, 0, -1, kLeast, kRows + 1, kMost}) {
    checkStep(right, {kMiddle, kLast}, {{T::kCuSeqlensQ, kLast, value}});
    ASSERT_FALSE(HasFailure());
  }
}

// The first sequence has as many tokens as it may, one of them in front of all rows. The second has one too many.
TEST_P(BadOffsets, OnesInFrontOfTheRowsLeaveTheirSequences) {
  checkStep(runRight(), {kFirst, kMiddle}, {{T::kCuSeqlensQ, 0, -1}, {T::kCuSeqlensQ, 1, kNew - 1}});
}

// The sequence between them decodes as ever.
TEST_P(BadOffsets, BothEndsThatAreNoneLeaveTheirSequences) {
  checkStep(runRight(), {kFirst, kLast}, {{T::kCuSeqlensQ, 0, 1}, {T::kCuSeqlensQ, kBatch, kRows + 1}});
}

} // namespace
} // namespace nsa::test
