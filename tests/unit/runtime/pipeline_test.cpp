// Which kernels an operator takes, which routes the maxima open, and how large its workspace is.
#include "runtime/engine/graph/pipeline.h"

#include "runtime/base/text.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>

using namespace nsa;

namespace {

Spec nsa128() {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.queryHeads = 64;
  spec.kvHeads = 4;
  spec.qkDim = spec.vDim = 128;
  return spec;
}

Maxima lengths(int64_t tokens) { return {.batch = 1, .tokensQ = tokens, .seqlenQ = tokens, .seqlenK = tokens}; }

std::string stepsText(const Spec &spec, const Maxima &maxima) {
  std::string text;
  for (const Step &step : stepsOf(spec, maxima))
    text += (text.empty() ? "" : " ") + std::string(operatorName(step.spec.op));
  return text;
}

TEST(Pipeline, NsaIsItsBranches) {
  Spec spec = nsa128();
  EXPECT_EQ(stepsText(spec, lengths(8192)), "compress cmp select sel window combine");
  spec.layout = Layout::kPacked;
  EXPECT_EQ(stepsText(spec, lengths(8192)), "sequences compress cmp select sel window combine");
  spec.branches = kBranchWin;
  EXPECT_EQ(stepsText(spec, lengths(8192)), "sequences window combine");
  spec.branches = kBranchCmp;
  EXPECT_EQ(stepsText(spec, lengths(8192)), "sequences compress cmp combine");
  spec.branches = kBranchSel; // scores need the compressed branch
  EXPECT_EQ(stepsText(spec, lengths(8192)), "sequences compress cmp select sel combine");
}

// The sums of gradients of compressed rows know no selection block, so any stride has to go through.
TEST(Pipeline, StepsOfAGradientAreValidForEveryStride) {
  Spec spec = nsa128();
  spec.op = Operator::kCmpBwd;
  for (const int32_t stride : {7, 16, 48, 100}) {
    spec.cmpBlock = 2 * stride;
    spec.cmpStride = stride;
    // Few compressed rows and many queries, so that programs share the queries and their parts are added up.
    const Maxima maxima = lengths(8192);
    EXPECT_NE(stepsText(spec, maxima).find("sum_parts"), std::string::npos) << stride;
    for (const Step &step : stepsOf(spec, maxima)) {
      EXPECT_TRUE(step.spec.validate().isOk()) << stride << ": " << step.spec.validate().toString();
      EXPECT_TRUE(step.maxima.validate(step.spec).isOk()) << stride;
    }
  }
}

// Lengths are in device memory in either layout, so a table always says where what is.
TEST(Pipeline, DecodeIsTheForwardOverWhatItAppends) {
  Spec spec = nsa128();
  spec.op = Operator::kDecode;
  for (Layout layout : {Layout::kDense, Layout::kPacked}) {
    spec.layout = layout;
    spec.branches = kAllBranches;
    EXPECT_EQ(stepsText(spec, lengths(8192)), "cache_sequences append compress cmp select sel window combine");
    EXPECT_EQ(stepsText(spec, lengths(512)), "cache_sequences append compress cmp select dense dense combine");
    for (const Step &step : stepsOf(spec, lengths(8192)))
      EXPECT_EQ(step.spec.layout, step.role == Role::kCombine ? layout : Layout::kPacked) << operatorName(step.spec.op);
    spec.branches = kBranchWin;
    EXPECT_EQ(stepsText(spec, lengths(8192)), "cache_sequences append window combine");
    spec.branches = kBranchCmp;
    EXPECT_EQ(stepsText(spec, lengths(8192)), "cache_sequences append compress cmp combine");
  }
}

// Blocks are many where comparing all with all is more than a launch.
TEST(Pipeline, FewQueriesShareKeysAndRankManyBlocks) {
  Spec spec = nsa128();
  spec.op = Operator::kDecode;
  auto token = [](int64_t batch, int64_t keys) {
    return Maxima{.batch = batch, .tokensQ = batch, .seqlenQ = 1, .seqlenK = keys};
  };
  const std::string before = "cache_sequences append compress split_cmp scores ";
  EXPECT_EQ(stepsText(spec, token(1, 4096)), before + "choose ascend split_sel_win merge");
  EXPECT_EQ(stepsText(spec, token(1, 65536)), before + "rank choose ascend split_sel_win merge");
  EXPECT_EQ(stepsText(spec, token(64, 32768)), before + "rank choose ascend split_sel_win merge");
}

TEST(Pipeline, ShortcutsAreTakenExactlyWhereNothingElseIsPossible) {
  const Spec spec = nsa128(); // 16 blocks of 64, window 512
  EXPECT_EQ(stepsText(spec, lengths(1025)), "compress cmp select sel window combine");
  EXPECT_EQ(stepsText(spec, lengths(1024)), "compress cmp select dense window combine");
  EXPECT_EQ(stepsText(spec, lengths(513)), "compress cmp select dense window combine");
  EXPECT_EQ(stepsText(spec, lengths(512)), "compress cmp select dense dense combine");
  // One bucket, two routes: the plan's key tells them apart.
  EXPECT_NE(routesOf(spec, lengths(600)), routesOf(spec, lengths(512)));
  EXPECT_NE(routesOf(spec, lengths(1024)), routesOf(spec, lengths(1025)));
}

TEST(Pipeline, SingleOperatorsAreOneKernelAndTheirLengths) {
  Spec spec = nsa128();
  for (Operator op :
       {Operator::kDense, Operator::kWindow, Operator::kCompress, Operator::kCmp, Operator::kSel, Operator::kCombine}) {
    spec.op = op;
    spec.layout = Layout::kDense;
    EXPECT_EQ(stepsText(spec, lengths(64)), operatorName(op));
    spec.layout = Layout::kPacked;
    const std::string sequences = op == Operator::kCombine ? "" : "sequences ";
    EXPECT_EQ(stepsText(spec, lengths(64)), sequences + std::string(operatorName(op)));
  }
  spec.op = Operator::kSelect;
  spec.layout = Layout::kDense;
  EXPECT_EQ(stepsText(spec, lengths(64)), "cmp select");
}

// The inverse of lists has kernels in plans that ask for it, which know of no request.
TEST(Pipeline, TheInverseHasKernelsOnRequest) {
  Spec spec = nsa128();
  spec.makeIndex = true;
  const std::string index = " index_lengths index_counts index_starts index_fill";
  EXPECT_EQ(stepsText(spec, lengths(8192)), "compress cmp select sel window combine" + index);
  EXPECT_EQ(stepsText(spec, lengths(1024)), "compress cmp select dense window combine" + index);
  spec.layout = Layout::kPacked;
  EXPECT_EQ(stepsText(spec, lengths(8192)), "sequences compress cmp select sel window combine" + index);
  const size_t with = WorkspaceLayout(spec, lengths(8192), 0, true).bytes;
  for (const Step &step : stepsOf(spec, lengths(8192)))
    EXPECT_FALSE(step.spec.makeIndex) << operatorName(step.spec.op);
  spec.makeIndex = false;
  // A number for each query, and of each block one for each of 64 parts.
  EXPECT_EQ(with - WorkspaceLayout(spec, lengths(8192), 0, true).bytes,
            size_t{4 * 4} * 8192 + size_t{4 * 4} * 64 * 128);
  spec.op = Operator::kSelect;
  spec.makeIndex = true;
  EXPECT_EQ(stepsText(spec, lengths(64)), "sequences cmp select" + index);
  spec.op = Operator::kNsa;
  spec.branches = kBranchCmp | kBranchWin;
  EXPECT_EQ(spec.validate().error().field, "make_index");
  EXPECT_EQ(spec.validate().error().rule, "must be 0 without the branch sel, which has the lists");
  spec.op = Operator::kNsaBwd; // does not read the field
  EXPECT_TRUE(spec.validate().isOk()) << spec.validate().toString();
  spec.clearUnread();
  EXPECT_FALSE(spec.makeIndex);
}

// The kernels' scratch is theirs; without kernels the layout is the formula of docs/operators.md.
// The role of an argument, of the step of this role.
std::optional<TensorRole> roleOfArgument(const std::vector<Step> &steps, Role role, View view) {
  std::optional<TensorRole> found;
  for (const Step &step : steps)
    for (const Binding &binding : step.arguments)
      if (step.role == role && binding.view == view)
        found = roleOf(binding);
  return found;
}

// Plans that together have all kernels.
constexpr struct {
  int64_t queries;
  Layout layout;
  CmpKind kind;
  bool isStep = false; // of decode, in one launch
} kPlans[] = {{1, Layout::kDense, CmpKind::kMean},       {1, Layout::kDense, CmpKind::kMean, true},
              {1, Layout::kPacked, CmpKind::kMlp, true}, {1, Layout::kPacked, CmpKind::kLinear},
              {4096, Layout::kDense, CmpKind::kMlp},     {4096, Layout::kPacked, CmpKind::kMean}};

// `nsa check` refuses what an operator may not take, so the table has to name all that plans pass, and no more.
TEST(Pipeline, OperatorsMayTakeWhatPlansPassToThem) {
  std::map<Operator, std::set<View>> passed;
  for (const OperatorDef &def : publicOperators())
    for (const auto &[queries, layout, kind, isStep] : kPlans) {
      Spec spec = nsa128();
      spec.op = def.op;
      spec.layout = layout;
      spec.cmpKind = kind;
      spec.mlpHidden = 64;
      spec.dqSlots = queries == 1;
      spec.decodeStep = isStep && def.hasCache;
      for (const Step &step : stepsOf(spec, {.batch = 1, .tokensQ = queries, .seqlenQ = queries, .seqlenK = 65536}))
        for (const Binding &binding : step.arguments) {
          EXPECT_TRUE(definitionOf(step.spec.op).mayTake(binding.view))
              << operatorName(step.spec.op) << " " << viewRule(binding.view).name;
          passed[step.spec.op].insert(binding.view);
        }
    }
  for (const OperatorDef &def : operatorTable())
    for (const View view : def.planViews)
      EXPECT_TRUE(std::ranges::any_of(operatorTable(),
                                      [&](const OperatorDef &other) {
                                        return other.planViews.data() == def.planViews.data() &&
                                               passed[other.op].contains(view);
                                      }))
          << def.name << " " << viewRule(view).name;
  EXPECT_FALSE(definitionOf(Operator::kSel).mayTake(View::kGates));
  EXPECT_FALSE(definitionOf(Operator::kSequences).mayTake(View::kLse));
  EXPECT_EQ(joined(definitionOf(Operator::kRank).viewNames(), " "),
            "block_list sequences status scores score_rows score_blocks best_scores best_blocks choice_rows");
}

TEST(Pipeline, EveryArgumentHasTheRoleOfWhatItIsBoundTo) {
  for (const OperatorDef &def : publicOperators())
    for (const auto &[queries, layout, kind, isStep] : kPlans) {
      Spec spec = nsa128();
      spec.op = def.op;
      spec.layout = layout;
      spec.cmpKind = kind;
      spec.mlpHidden = 64;
      spec.decodeStep = isStep && def.hasCache;
      for (const Step &step : stepsOf(spec, {.batch = 1, .tokensQ = queries, .seqlenQ = queries, .seqlenK = 65536}))
        for (const Binding &binding : step.arguments) {
          const std::string name = std::string(def.name) + " " + std::string(viewRule(binding.view).name);
          const std::optional<TensorRole> role = roleOf(binding);
          ASSERT_EQ(role.has_value(), binding.tensor != Binding::kNoTensor || binding.buffer != Buffer::kNone) << name;
          if (!role)
            continue;
          const ViewElements elements = viewRule(binding.view).elements;
          EXPECT_EQ(*role == TensorRole::kIndex, elements == ViewElements::kIndex) << name;
          EXPECT_EQ(*role == TensorRole::kStatistics, elements == ViewElements::kStatistics) << name;
          if (binding.buffer != Buffer::kNone)
            EXPECT_EQ(roleOf({.view = binding.view, .buffer = binding.buffer}), role) << name;
        }
    }
}

// The kernels of a cache read and write its type, and those that turn the caller's tokens into rows of a cache the
// caller's.
TEST(Pipeline, ACacheMayHaveATypeOfItsOwn) {
  Spec spec = nsa128();
  spec.op = Operator::kDecode;
  spec.cacheDtype = DType::kFp8E4M3;
  for (const int64_t queries : {1, 4096}) {
    const Maxima maxima{.batch = 1, .tokensQ = queries, .seqlenQ = queries, .seqlenK = 65536};
    const std::vector<Step> steps = stepsOf(spec, maxima);
    for (const Role attending : {Role::kCmp, Role::kSel}) {
      EXPECT_EQ(roleOfArgument(steps, attending, View::kK), TensorRole::kKeyValue);
      EXPECT_EQ(roleOfArgument(steps, attending, View::kQ), TensorRole::kIo);
    }
    EXPECT_EQ(roleOfArgument(steps, Role::kCompress, View::kK), TensorRole::kIo);
    EXPECT_EQ(roleOfArgument(steps, Role::kCompress, View::kKComp), TensorRole::kKeyValue);
    EXPECT_EQ(roleOfArgument(steps, Role::kAppend, View::kKSel), TensorRole::kIo);
    EXPECT_EQ(roleOfArgument(steps, Role::kAppend, View::kKSelCache), TensorRole::kKeyValue);
    for (const Step &step : steps)
      EXPECT_EQ(step.spec.types().of(TensorRole::kKeyValue), DType::kFp8E4M3);
  }
  spec.op = Operator::kNsa; // has no cache
  for (const Step &step : stepsOf(spec, lengths(4096)))
    EXPECT_EQ(step.spec.types().of(TensorRole::kKeyValue), DType::kBf16);
}

// Only the kernels of compressed keys of `nsa_bwd` have `split_ds`, where phi has weights and the type has 16 bits.
TEST(Pipeline, DsIsSplitForCompressedKeysWhosePhiHasWeights) {
  for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp})
    for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
      SCOPED_TRACE(std::string(cmpKindName(kind)) + " " + std::string(dtypeName(dtype)));
      Spec spec = nsa128();
      spec.op = Operator::kNsaBwd;
      spec.cmpKind = kind;
      spec.mlpHidden = 64;
      spec.dtype = dtype;
      const bool isSplit = kind != CmpKind::kMean && dtype != DType::kF32;
      for (const int32_t branches : {int32_t{kAllBranches}, int32_t{kBranchCmp}}) {
        spec.branches = branches;
        std::set<Role> split;
        for (const Step &step : stepsOf(spec, lengths(4096)))
          if (Problem::make(step.spec, step.maxima).fixed().contains("split_ds"))
            split.insert(step.role);
        std::set<Role> expected = {Role::kDqCmp, Role::kDkvCmp};
        if (branches == kBranchCmp)
          expected.insert(Role::kZeroQueries); // shares the kernel of kDqCmp
        EXPECT_EQ(split, isSplit ? expected : std::set<Role>()) << branches;
      }
      spec.branches = kAllBranches;
      for (const Operator op : {Operator::kDenseBwd, Operator::kCmpBwd}) {
        spec.op = op;
        for (const Step &step : stepsOf(spec, lengths(4096)))
          EXPECT_FALSE(Problem::make(step.spec, step.maxima).fixed().contains("split_ds")) << operatorName(op);
      }
    }
}

// The kernels of a gradient of compression follow from the kind, and its workspace is the formula of docs/operators.md.
TEST(Pipeline, GradientsOfCompressionHaveTheKernelsOfTheirKind) {
  Spec spec = nsa128();
  spec.op = Operator::kCompressBwd;
  spec.mlpHidden = 256;
  const Maxima maxima = lengths(4096);
  EXPECT_EQ(stepsText(spec, maxima), "compress_dx");
  EXPECT_EQ(WorkspaceLayout(spec, maxima, 0, true).bytes, 0u);
  spec.cmpKind = CmpKind::kLinear;
  EXPECT_EQ(stepsText(spec, maxima), "compress_dx compress_dw compress_db compress_sums");
  const auto align = [](int64_t bytes) { return (bytes + 255) / 256 * 256; };
  // 2 * 32 * 2 * 2 tiles of 64 x 64 weights, of which two parts make 512 programs.
  const WorkspaceLayout linear(spec, maxima, 0, true);
  EXPECT_EQ(linear.parts.weights, 2);
  EXPECT_EQ(static_cast<int64_t>(linear.bytes), align(4 * 2 * (2 * 32 * 128) * 128) + 4 * 2 * 4 * 128);
  spec.cmpKind = CmpKind::kMlp;
  spec.layout = Layout::kPacked;
  EXPECT_EQ(stepsText(spec, maxima), "sequences compress_dz compress_dx compress_dw compress_db compress_sums");
  const WorkspaceLayout mlp(spec, maxima, 0, true);
  EXPECT_EQ(mlp.parts.weights, 1);
  const int64_t hidden = align(spec.compressedBlocks(4096) * spec.kvHeads * 256 * 2);
  EXPECT_EQ(static_cast<int64_t>(mlp.bytes),
            align(32) + 8 * hidden + align(4 * (2 * 32 * 128 + 2 * 256) * 256) + 4 * 4 * 256);
  spec.dtype = DType::kF32; // nothing is rounded
  EXPECT_EQ(static_cast<int64_t>(WorkspaceLayout(spec, maxima, 0, true).bytes),
            align(32) + 4 * 2 * hidden + align(4 * (2 * 32 * 128 + 2 * 256) * 256) + 4 * 4 * 256);
  spec.dtype = DType::kBf16;
  // Few blocks have few parts, and a layer of any size one.
  spec.layout = Layout::kDense;
  spec.cmpKind = CmpKind::kLinear;
  spec.qkDim = spec.vDim = 16;
  EXPECT_EQ(WorkspaceLayout(spec, maxima, 0, true).parts.weights, 8);
  EXPECT_EQ(WorkspaceLayout(spec, lengths(300), 0, true).parts.weights, 2);
  EXPECT_EQ(WorkspaceLayout(spec, lengths(100), 0, true).parts.weights, 1);
  spec.cmpKind = CmpKind::kMlp;
  spec.mlpHidden = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(WorkspaceLayout(spec, maxima, 0, true).parts.weights, 1);
}

TEST(Pipeline, TheWorkspaceIsBoundedByChunks) {
  const Spec spec = nsa128();
  const WorkspaceLayout none(spec, lengths(131072), 0, true);
  EXPECT_EQ(none.chunk, 10752);
  const int64_t perQuery = 3 * (64 * 128 * 2 + 4 * 4) + 4 * 64 + 4 * 4 * 16;
  EXPECT_LE(none.chunk * perQuery, int64_t{512} << 20);
  EXPECT_LT(none.bytes, size_t{2} << 30);
  EXPECT_GE(none.bytes, static_cast<size_t>(none.chunk * 3 * (64 * 128 * 2)));

  const WorkspaceLayout small(spec, lengths(100), 0, true);
  EXPECT_EQ(small.chunk, 100);
  Maxima batched = lengths(131072);
  batched.batch = 1024;
  EXPECT_EQ(WorkspaceLayout(spec, batched, 0, true).chunk, 64);
  EXPECT_LT(WorkspaceLayout(spec, lengths(131072), 0, false).chunk, none.chunk);
}

// Of a packed batch the memory of a chunk has rows for spare queries, unless the chunk holds all queries.
TEST(Pipeline, PackedChunksHaveSpareRows) {
  Spec spec = nsa128();
  spec.layout = Layout::kPacked;
  for (const bool isGpu : {true, false}) {
    const int64_t spare = isGpu ? 384 : 128;
    Maxima maxima = lengths(131072);
    const WorkspaceLayout many(spec, maxima, 0, isGpu);
    EXPECT_EQ(many.chunkRows, many.chunk + spare);
    EXPECT_EQ(many.chunkRows, isGpu ? 10752 : 640);
    maxima.tokensQ = many.chunkRows;
    const WorkspaceLayout all(spec, maxima, 0, isGpu);
    EXPECT_EQ(all.chunkRows, maxima.tokensQ);
    EXPECT_EQ(all.chunk, maxima.tokensQ);
    spec.vDim = 1 << 20; // a query has more memory than a chunk
    const WorkspaceLayout wide(spec, lengths(131072), 0, isGpu);
    EXPECT_EQ(wide.chunk, 64);
    EXPECT_EQ(wide.chunkRows, 64 + spare);
    spec.vDim = 128;
  }
  // Sequences of a dense layout have the same chunks in any batch, also where decode's kernels read a table.
  for (const Operator op : {Operator::kNsa, Operator::kDecode, Operator::kNsaBwd}) {
    spec.op = op;
    spec.layout = Layout::kDense;
    const WorkspaceLayout dense(spec, lengths(131072), 0, true);
    EXPECT_EQ(dense.chunkRows, dense.chunk) << operatorName(op);
    EXPECT_LT(dense.chunk, 131072) << operatorName(op);
  }
}

// Each number is legal alone, and their product wraps to few bytes, or to none.
TEST(Pipeline, AWorkspaceThatNoNumberHoldsIsAnError) {
  const int64_t most = (int64_t{1} << 31) - 128;
  for (const Operator op : {Operator::kSelect, Operator::kNsa, Operator::kDecode})
    for (const Layout layout : {Layout::kDense, Layout::kPacked})
      for (const int32_t dim : {1 << 28, 1 << 30}) {
        Spec spec = nsa128();
        spec.op = op;
        spec.layout = layout;
        spec.queryHeads = spec.kvHeads = 1 << 30;
        spec.qkDim = spec.vDim = dim;
        ASSERT_TRUE(spec.validate().isOk()) << spec.validate().toString();
        const int64_t batch = op == Operator::kDecode ? 1 << 25 : 1 << 30;
        const Maxima maxima = {.batch = batch, .tokensQ = 1 << 25, .seqlenQ = 1, .seqlenK = 1 << 22};
        ASSERT_TRUE(maxima.validate(spec).isOk()) << maxima.validate(spec).toString();
        const Status status = WorkspaceLayout(spec, maxima, 0, true).check(maxima);
        ASSERT_FALSE(status.isOk()) << operatorName(op) << ' ' << dim;
        EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
        EXPECT_EQ(status.error().field, "maxima");
        EXPECT_NE(status.error().value.find("max_batch=" + std::to_string(batch)), std::string::npos);
        EXPECT_NE(status.error().rule.find("must be below 2^62 bytes"), std::string::npos);
      }
  // Large, and still a number.
  Spec spec = nsa128();
  const Maxima large = {.batch = most, .tokensQ = most, .seqlenQ = 1, .seqlenK = 1 << 22};
  EXPECT_TRUE(WorkspaceLayout(spec, large, 0, true).check(large).isOk());
}

} // namespace
