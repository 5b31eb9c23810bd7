#include "runtime/engine/graph/graph.h"

#include "runtime/base/key_splits.h"
#include "runtime/engine/graph/compress_gradient_graph.h"
#include "runtime/engine/graph/gradient_graphs.h"
#include "runtime/engine/graph/nsa_gradient_graph.h"
#include "runtime/engine/graph/workspace.h"

#include <algorithm>
#include <array>
#include <limits>

namespace nsa {

namespace {

using T = TensorName;
using V = View;
using B = Buffer;
using Rows = GraphBuffer::Rows;
using Heads = GraphBuffer::Heads;
using Columns = GraphBuffer::Columns;
using Copies = GraphBuffer::Copies;
using Launch = GraphNode::Launch;
using enum Order;
using enum TensorRole;

constexpr T kNoTensor = Binding::kNoTensor;
constexpr int32_t kScoredBranches = kBranchCmp | kBranchSel; // those that need compressed keys

// How the spec of a step differs from the operator's.

// Kernels of decode find their lengths in a table, whatever the layout of the new tokens is.
void readTable(Spec &step, const Spec &whole) {
  dropCompression(step, whole);
  step.layout = Layout::kPacked;
}

// One kernel serves both branches, so that they do not wait for each other. The fields of a branch that is off have
// their defaults.
void joinBranches(Spec &step, const Spec &whole) {
  readTable(step, whole);
  if (!whole.hasBranch(kBranchSel)) {
    step.selBlock = Spec().selBlock;
    step.selCount = Spec().selCount;
  }
  if (!whole.hasBranch(kBranchWin))
    step.window = std::numeric_limits<int32_t>::max();
}

// For callers without the log-sum-exp: the compressed branch over its keys as values.
void takeKeysAsValues(Spec &step, const Spec &whole) { step.vDim = whole.qkDim; }

bool isWindowAlone(const Spec &spec, const Maxima &) { return !spec.hasBranch(kBranchSel); }
bool ranks(const Spec &spec, const Maxima &maxima) { return rankSegment(spec, maxima) != 0; }

// Arguments that are no views.

// New tokens complete at most so many blocks of each sequence.
void countNewBlocks(KernelCall &call, const Spec &spec, const WorkspaceLayout &, const Call &) {
  call.grid.maxBlocksC = (call.grid.maxSeqlenQ + spec.cmpStride - 1) / spec.cmpStride;
}

void countScores(KernelCall &call, const Spec &, const WorkspaceLayout &layout, const Call &) {
  setScalar(call.scalars, Scalar::kSplits, layout.shares.counts[0]);
  // Of this call's cache, which may have less room than the plan was made for.
  setScalar(call.scalars, Scalar::kMaxSeqlenK, call.grid.maxSeqlenK);
}

void boundSlots(KernelCall &call, const Spec &, const WorkspaceLayout &layout, const Call &) {
  setScalar(call.scalars, Scalar::kPastCmpSplit, layout.shares.past[0]);
  setScalar(call.scalars, Scalar::kPastSelSplit, layout.shares.past[1]);
  setScalar(call.scalars, Scalar::kPastWinSplit, layout.shares.past[2]);
}

// An operator that is one kernel.
constexpr GraphNode kSingleNodes[] = {kSequencesNode, {.role = Role::kMain, .bindsOperands = true}};
constexpr GraphBuffer kSingleBuffers[] = {kTableBuffer};
constexpr Graph kSingle = {kSingleNodes, kSingleBuffers};

constexpr Binding kLseOfSelect[] = {{V::kQ, T::kQCmp},
                                    {V::kK, T::kKComp},
                                    {V::kV, T::kKComp},
                                    {V::kOut, kNoTensor, B::kOutCmp},
                                    {V::kLse, kNoTensor, B::kLse}};
constexpr Binding kSelectAlone[] = {{V::kLse, T::kLse, B::kLse}};
constexpr auto kSelectNodes =
    joined(std::array{kSequencesNode,
                      GraphNode{.role = Role::kCmp,
                                .op = Operator::kCmp,
                                .change = takeKeysAsValues,
                                .launch = Launch::kWithoutLse,
                                .bindings = kLseOfSelect},
                      GraphNode{.role = Role::kMain, .bindsOperands = true, .bindings = kSelectAlone}},
           kAskedIndexNodes);
constexpr GraphBuffer kSelectBuffers[] = {
    kTableBuffer,
    {B::kLse, Role::kCmp, Rows::kChunk, Heads::kQuery, Columns::kOne, kStatistics},
    {B::kOutCmp, Role::kCmp, Rows::kChunk, Heads::kQuery, Columns::kQkDim, kIo},
    kListLengthsBuffer,
    kBlockCountsBuffer,
};
constexpr Graph kSelect = {kSelectNodes, kSelectBuffers, Operator::kSelect};

// The branches of nsa. Decode attends what is in its cache, and nsa the caller's tensors.
struct Keys {
  Binding k, v;
};
constexpr std::array<Binding, 6> cmpBindings(const Keys &keys) {
  return {{{V::kQ, T::kQCmp},
           keys.k,
           keys.v,
           {V::kLse, T::kLseCmp, B::kLse},
           {V::kOut, T::kOCmp, B::kOutCmp},
           {.view = V::kReads, .buffer = B::kReadsCmp, .ifReads = true}}};
}
constexpr std::array<Binding, 4> selectBindings(const Keys &keys) {
  return {{{V::kQ, T::kQCmp},
           keys.k,
           {V::kLse, T::kLseCmp, B::kLse},
           {V::kBlockList, T::kBlockList, B::kBlockList, kEntryRowHeadColumn}}};
}
constexpr std::array<Binding, 7> selBindings(const Keys &keys) {
  return {{{V::kQ, T::kQ},
           keys.k,
           keys.v,
           {V::kBlockList, T::kBlockList, B::kBlockList, kEntryRowHeadColumn},
           {V::kLse, T::kLseSel},
           {V::kOut, T::kOSel, B::kOutSel},
           {.view = V::kReads, .buffer = B::kReadsSel, .ifReads = true}}};
}
constexpr std::array<Binding, 6> winBindings(const Keys &keys) {
  return {{{V::kQ, T::kQ},
           keys.k,
           keys.v,
           {V::kLse, T::kLseWin},
           {V::kOut, T::kOWin, B::kOutWin},
           {.view = V::kReads, .buffer = B::kReadsWin, .ifReads = true}}};
}
constexpr Binding kCombineBindings[] = {
    {V::kGates, T::kGates},
    {V::kOut, T::kOut},
    {V::kReads, T::kReads},
    {.view = V::kOCmp, .tensor = T::kOCmp, .buffer = B::kOutCmp, .branches = kBranchCmp},
    {.view = V::kOSel, .tensor = T::kOSel, .buffer = B::kOutSel, .branches = kBranchSel},
    {.view = V::kOWin, .tensor = T::kOWin, .buffer = B::kOutWin, .branches = kBranchWin},
    {.view = V::kReadsCmp, .buffer = B::kReadsCmp, .branches = kBranchCmp, .ifReads = true},
    {.view = V::kReadsSel, .buffer = B::kReadsSel, .branches = kBranchSel, .ifReads = true},
    {.view = V::kReadsWin, .buffer = B::kReadsWin, .branches = kBranchWin, .ifReads = true},
};

using Change = void (*)(Spec &, const Spec &);
constexpr GraphNode cmpNode(Change change, std::span<const Binding> bindings) {
  return {.role = Role::kCmp,
          .op = Operator::kCmp,
          .branches = kScoredBranches,
          .change = change,
          .output = kBranchCmp,
          .isChunked = true,
          .bindings = bindings};
}
constexpr GraphNode selectNode(Change change, std::span<const Binding> bindings) {
  return {.role = Role::kSelect,
          .op = Operator::kSelect,
          .branches = kBranchSel,
          .change = change,
          .isChunked = true,
          .launch = Launch::kForLists,
          .bindings = bindings};
}
constexpr GraphNode selNode(Change change, std::span<const Binding> bindings) {
  return {.role = Role::kSel,
          .op = Operator::kSel,
          .branches = kBranchSel,
          .change = change,
          .output = kBranchSel,
          .shortcut = kSelIsDense,
          .shortcutOp = Operator::kDense,
          .isChunked = true,
          .bindings = bindings};
}
constexpr GraphNode winNode(Change change, std::span<const Binding> bindings) {
  return {.role = Role::kWin,
          .op = Operator::kWindow,
          .branches = kBranchWin,
          .change = change,
          .output = kBranchWin,
          .shortcut = kWinIsDense,
          .shortcutOp = Operator::kDense,
          .isChunked = true,
          .bindings = bindings};
}
constexpr GraphNode kCombineNode = {
    .role = Role::kCombine, .op = Operator::kCombine, .isChunked = true, .bindings = kCombineBindings};

constexpr GraphBuffer kLseBuffer = {B::kLse, Role::kCmp, Rows::kChunk, Heads::kQuery, Columns::kOne, kStatistics};
constexpr GraphBuffer kListBuffer = {B::kBlockList, Role::kCmp, Rows::kChunk, Heads::kKv, Columns::kSelCount, kIndex};
constexpr GraphBuffer outBuffer(Buffer buffer, Role maker) {
  return {buffer, maker, Rows::kChunk, Heads::kQuery, Columns::kVDim, kIo};
}
constexpr GraphBuffer readsBuffer(Buffer buffer, Role maker) {
  return {buffer, maker, Rows::kChunk, Heads::kKv, Columns::kOne, kIndex};
}

constexpr Keys kCmpOfNsa = {{V::kK, T::kKComp, B::kKComp}, {V::kV, T::kVComp, B::kVComp}};
constexpr auto kNsaCmp = cmpBindings(kCmpOfNsa);
constexpr auto kNsaSelect = selectBindings(kCmpOfNsa);
constexpr auto kNsaSel = selBindings({{V::kK, T::kKSel}, {V::kV, T::kVSel}});
constexpr auto kNsaWin = winBindings({{V::kK, T::kKWin}, {V::kV, T::kVWin}});
constexpr Binding kNsaCompress[] = {{V::kKComp, T::kKComp, B::kKComp}, {V::kVComp, T::kVComp, B::kVComp}};

constexpr auto kNsaNodes = joined(std::array{kSequencesNode,
                                             GraphNode{.role = Role::kCompress,
                                                       .op = Operator::kCompress,
                                                       .branches = kScoredBranches,
                                                       .bindsOperands = true,
                                                       .bindings = kNsaCompress},
                                             cmpNode(nullptr, kNsaCmp), selectNode(nullptr, kNsaSelect),
                                             selNode(nullptr, kNsaSel), winNode(nullptr, kNsaWin), kCombineNode},
                                  kAskedIndexNodes);
constexpr GraphBuffer kNsaBuffers[] = {
    kTableBuffer,
    {B::kKComp, Role::kCompress, Rows::kCompressed, Heads::kKv, Columns::kQkDim, kIo},
    {B::kVComp, Role::kCompress, Rows::kCompressed, Heads::kKv, Columns::kVDim, kIo},
    kLseBuffer,
    kListBuffer,
    outBuffer(B::kOutCmp, Role::kCmp),
    readsBuffer(B::kReadsCmp, Role::kCmp),
    outBuffer(B::kOutSel, Role::kSel),
    readsBuffer(B::kReadsSel, Role::kSel),
    outBuffer(B::kOutWin, Role::kWin),
    readsBuffer(B::kReadsWin, Role::kWin),
    kListLengthsBuffer,
    kBlockCountsBuffer,
};
constexpr Graph kNsa = {kNsaNodes, kNsaBuffers, Operator::kNsa};

// Decode: new tokens go into the cache, and the blocks that become whole with them too. From there on it is the forward
// pass over the cache.
constexpr Binding kAppendBindings[] = {
    {V::kKSel, T::kKSel},
    {V::kVSel, T::kVSel},
    {V::kKWin, T::kKWin},
    {V::kVWin, T::kVWin},
    {V::kKCmp, T::kKCmp},
    {V::kVCmp, T::kVCmp},
    {V::kKSelCache, T::kKSelCache},
    {V::kVSelCache, T::kVSelCache},
    {V::kKRaw, T::kKRaw},
    {V::kVRaw, T::kVRaw},
    // One pool for both branches is written once.
    {.view = V::kKWinCache, .tensor = T::kKWinCache, .sameAbsent = T::kKSelCache},
    {.view = V::kVWinCache, .tensor = T::kVWinCache, .sameAbsent = T::kVSelCache},
    {V::kKStaged, kNoTensor, B::kKStaged},
    {V::kVStaged, kNoTensor, B::kVStaged},
};
constexpr Binding kCompressNewBlocks[] = {{V::kK, kNoTensor, B::kKStaged},
                                          {V::kV, kNoTensor, B::kVStaged},
                                          {V::kKComp, T::kKCompCache},
                                          {V::kVComp, T::kVCompCache},
                                          {V::kSequences, kNoTensor, B::kTable, kSecondRowColumn}};
constexpr GraphNode kCacheSequencesNode = {
    .role = Role::kSequences, .op = Operator::kCacheSequences, .change = readTable, .bindings = kLengths};
constexpr GraphNode kAppendNode = {.role = Role::kAppend,
                                   .op = Operator::kAppend,
                                   .change = readTable,
                                   .writesCache = true,
                                   .bindings = kAppendBindings};
constexpr GraphNode kCompressNewNode = {.role = Role::kCompress,
                                        .op = Operator::kCompress,
                                        .branches = kScoredBranches,
                                        .change = readTable,
                                        .writesCache = true,
                                        .bindsOperands = true,
                                        .bindings = kCompressNewBlocks,
                                        .prepare = countNewBlocks};
constexpr GraphBuffer kCacheTableBuffer = {
    B::kTable, Role::kSequences, Rows::kSequences, Heads::kNone, Columns::kTableFields, kIndex, Copies::kTwo};
constexpr GraphBuffer kKStagedBuffer = {B::kKStaged, Role::kCompress, Rows::kStaged, Heads::kKv, Columns::kQkDim, kIo};
constexpr GraphBuffer kVStagedBuffer = {B::kVStaged, Role::kCompress, Rows::kStaged, Heads::kKv, Columns::kVDim, kIo};

constexpr Keys kCmpOfCache = {{V::kK, T::kKCompCache}, {V::kV, T::kVCompCache}};
constexpr auto kCacheCmp = cmpBindings(kCmpOfCache);
constexpr auto kCacheSelect = selectBindings(kCmpOfCache);
constexpr auto kCacheSel = selBindings({{V::kK, T::kKSelCache}, {V::kV, T::kVSelCache}});
constexpr auto kCacheWin = winBindings({{V::kK, T::kKWinCache}, {V::kV, T::kVWinCache}});
constexpr GraphNode kDecodeNodes[] = {kCacheSequencesNode,
                                      kAppendNode,
                                      kCompressNewNode,
                                      cmpNode(readTable, kCacheCmp),
                                      selectNode(readTable, kCacheSelect),
                                      selNode(readTable, kCacheSel),
                                      winNode(readTable, kCacheWin),
                                      kCombineNode};
constexpr GraphBuffer kDecodeBuffers[] = {
    kCacheTableBuffer,
    kKStagedBuffer,
    kVStagedBuffer,
    kLseBuffer,
    kListBuffer,
    outBuffer(B::kOutCmp, Role::kCmp),
    readsBuffer(B::kReadsCmp, Role::kCmp),
    outBuffer(B::kOutSel, Role::kSel),
    readsBuffer(B::kReadsSel, Role::kSel),
    outBuffer(B::kOutWin, Role::kWin),
    readsBuffer(B::kReadsWin, Role::kWin),
};
constexpr Graph kDecode = {kDecodeNodes, kDecodeBuffers, Operator::kDecode};

// Decode with few queries: programs share the keys of each query, and `merge` adds up what they found.
#define NSA_SHARE_BINDINGS                                                                                             \
  {V::kOSplit, kNoTensor, B::kShareOut}, {V::kLseSplit, kNoTensor, B::kShareLse, kColumnRowHead}, {                    \
    V::kReadsSplit, kNoTensor, B::kShareReads, kColumnRowHead                                                          \
  }
constexpr Binding kSplitCmpBindings[] = {{V::kQ, T::kQCmp},
                                         {V::kK, T::kKCompCache},
                                         {V::kV, T::kVCompCache},
                                         NSA_SHARE_BINDINGS,
                                         {V::kLseHeads, kNoTensor, B::kShareHeadLse}};
constexpr Binding kSplitSelWinBindings[] = {{V::kQ, T::kQ},
                                            {V::kK, T::kKSelCache},
                                            {V::kV, T::kVSelCache},
                                            {V::kKWin, T::kKWinCache},
                                            {V::kVWin, T::kVWinCache},
                                            NSA_SHARE_BINDINGS,
                                            {V::kChoice, kNoTensor, B::kChoice, kRowHeadColumn}};
#undef NSA_SHARE_BINDINGS
constexpr Binding kScoresBindings[] = {{V::kQ, T::kQCmp},
                                       {V::kK, T::kKCompCache},
                                       {V::kLseGroups, kNoTensor, B::kShareHeadLse, kEntryRowGroup},
                                       {V::kScores, kNoTensor, B::kScores, kRowHeadColumn},
                                       {V::kScoreRows, kNoTensor, B::kScores, kRowHeadPiece}};
constexpr Binding kRankBindings[] = {{V::kScores, kNoTensor, B::kScores, kRowHeadColumn},
                                     {V::kScoreRows, kNoTensor, B::kScores, kRowHeadPiece},
                                     {V::kBestScores, kNoTensor, B::kKeptScores, kRowHeadColumn},
                                     {V::kBestBlocks, kNoTensor, B::kKeptBlocks, kRowHeadColumn}};
// Where `rank` is launched, the scores that it keeps take the place of all scores.
constexpr Binding kChooseBindings[] = {{V::kScores, kNoTensor, B::kScores, kRowHeadColumn},
                                       {V::kScoreRows, kNoTensor, B::kScores, kRowHeadPiece},
                                       {V::kScores, kNoTensor, B::kKeptScores, kRowHeadColumn},
                                       {V::kScoreRows, kNoTensor, B::kKeptScores, kRowHeadPiece},
                                       {V::kScoreBlocks, kNoTensor, B::kKeptBlocks, kRowHeadColumn},
                                       {V::kBestBlocks, kNoTensor, B::kChoice, kRowHeadColumn},
                                       {V::kChoiceRows, kNoTensor, B::kChoice, kRowHead},
                                       {V::kBlockList, T::kBlockList}};
constexpr Binding kMergeBindings[] = {{V::kOSlots, kNoTensor, B::kShareOut},
                                      {V::kLseSplit, kNoTensor, B::kShareLse, kColumnRowHead},
                                      {V::kLseSlots, kNoTensor, B::kShareLse, kRowHead},
                                      {V::kReadsSlots, kNoTensor, B::kShareReads, kRowHead},
                                      {V::kGates, T::kGates},
                                      {V::kOut, T::kOut},
                                      {V::kReads, T::kReads},
                                      {V::kOCmp, T::kOCmp},
                                      {V::kOSel, T::kOSel},
                                      {V::kOWin, T::kOWin},
                                      {V::kLseCmp, T::kLseCmp},
                                      {V::kLseSel, T::kLseSel},
                                      {V::kLseWin, T::kLseWin}};
constexpr GraphNode kShareNodes[] = {
    kCacheSequencesNode,
    kAppendNode,
    kCompressNewNode,
    {.role = Role::kCmp,
     .op = Operator::kSplitCmp,
     .branches = kScoredBranches,
     .change = readTable,
     .output = kBranchCmp,
     .sharesKeys = true,
     .launch = Launch::kForScores,
     .bindings = kSplitCmpBindings},
    {.role = Role::kScores,
     .op = Operator::kScores,
     .branches = kBranchSel,
     .change = readTable,
     .launch = Launch::kForLists,
     .bindings = kScoresBindings,
     .prepare = countScores},
    {.role = Role::kRank,
     .op = Operator::kRank,
     .branches = kBranchSel,
     .isNeeded = ranks,
     .change = readTable,
     .launch = Launch::kForLists,
     .bindings = kRankBindings,
     .prepare = countScores},
    {.role = Role::kSelect,
     .op = Operator::kChoose,
     .branches = kBranchSel,
     .change = readTable,
     .launch = Launch::kForLists,
     .bindings = kChooseBindings,
     .prepare = countScores},
    {.role = Role::kAscend,
     .op = Operator::kAscend,
     .branches = kBranchSel,
     .change = readTable,
     .launch = Launch::kForCallerList,
     .bindings = kChooseBindings,
     .prepare = countScores},
    {.role = Role::kSel,
     .op = Operator::kSplitSelWin,
     .branches = kBranchSel,
     .change = joinBranches,
     .output = kBranchSel | kBranchWin,
     .sharesKeys = true,
     .bindings = kSplitSelWinBindings},
    {.role = Role::kWin,
     .op = Operator::kSplitSelWin,
     .branches = kBranchWin,
     .isNeeded = isWindowAlone,
     .change = joinBranches,
     .output = kBranchWin,
     .sharesKeys = true,
     .bindings = kSplitSelWinBindings},
    {.role = Role::kCombine, .op = Operator::kMerge, .bindings = kMergeBindings, .prepare = boundSlots},
};
constexpr GraphBuffer kShareBuffers[] = {
    kCacheTableBuffer,
    kKStagedBuffer,
    kVStagedBuffer,
    {B::kShareOut, Role::kCombine, Rows::kQueries, Heads::kQuery, Columns::kVDim, kStatistics, Copies::kSplits},
    {B::kShareLse, Role::kCombine, Rows::kQueries, Heads::kQuery, Columns::kSlots, kStatistics},
    {B::kShareHeadLse, Role::kCmp, Rows::kQueries, Heads::kQuery, Columns::kOne, kStatistics, Copies::kCmpSplits},
    {B::kShareReads, Role::kCombine, Rows::kQueries, Heads::kKv, Columns::kSlots, kIndex},
    {B::kScores, Role::kScores, Rows::kQueries, Heads::kKv, Columns::kScoreBlocks, kStatistics},
    {B::kKeptScores, Role::kRank, Rows::kQueries, Heads::kKv, Columns::kKeptBlocks, kStatistics},
    {B::kKeptBlocks, Role::kRank, Rows::kQueries, Heads::kKv, Columns::kKeptBlocks, kIndex},
    {B::kChoice, Role::kCombine, Rows::kQueries, Heads::kKv, Columns::kSelCount, kIndex},
};
constexpr Graph kDecodeOfFew = {kShareNodes, kShareBuffers, Operator::kDecode, /*isOfFew=*/true};

// An operator has the first graph that fits it.
constexpr const Graph *kGraphs[] = {&kSelect, &kNsa,    &kDecode,      &kDecodeOfFew, &kDenseBwd, &kWindowBwd,
                                    &kCmpBwd, &kInvert, &kCompressBwd, &kSelBwd,      &kNsaBwd,   &kSingle};
// The graph of each operator. In decode with few queries, programs share keys: kDecodeOfFew.
constexpr auto kGraphOf = [] {
  std::array<const Graph *, kOperators> result{};
  for (size_t op = 0; op < kOperators; ++op)
    result[op] = *std::ranges::find_if(
        kGraphs, [&](const Graph *graph) { return !graph->op || *graph->op == static_cast<Operator>(op); });
  return result;
}();

// Each binding names a buffer of its graph, each buffer has a maker, and nodes that run in chunks follow each other.
constexpr bool isConsistent(const Graph &graph) {
  const auto isWhole = [](const GraphNode &node) { return !node.isChunked; };
  const auto chunked = std::ranges::find_if_not(graph.nodes, isWhole);
  if (!std::all_of(std::find_if(chunked, graph.nodes.end(), isWhole), graph.nodes.end(), isWhole))
    return false;
  for (const GraphNode &node : graph.nodes) {
    for (const Binding &binding : node.bindings)
      if (binding.buffer != B::kNone && std::ranges::count(graph.buffers, binding.buffer, &GraphBuffer::buffer) != 1)
        return false;
  }
  return std::ranges::all_of(graph.buffers, [&](const GraphBuffer &buffer) {
    return std::ranges::count(graph.nodes, buffer.maker, &GraphNode::role) == 1;
  });
}
static_assert(std::ranges::all_of(kGraphs, [](const Graph *graph) { return isConsistent(*graph); }));

} // namespace

std::string_view roleName(Role role, Operator op) {
  constexpr std::string_view kNames[] = {
      "sequences",    "append",      "compress",    "cmp",          "scores",   "rank",
      "select",       "ascend",      "sel",         "win",          "combine",  "deltas",
      "dq",           "dkv",         "gates",       "dq_cmp",       "dq_sel",   "dq_win",
      "dkv_cmp",      "sum_cmp",     "dkv_sel",     "dkv_win",      "sum",      "index_lengths",
      "index_counts", "index_fill",  "index_check", "dz",           "dx",       "dw",
      "db",           "sums",        "index_slots", "index_ranges", "dq_slots", "sum_slots",
      "zero_queries", "zero_weights"};
  static_assert(std::size(kNames) == static_cast<size_t>(Role::kMain) && kRoles == std::size(kNames) + 1);
  return role == Role::kMain ? operatorName(op) : kNames[static_cast<size_t>(role)];
}

std::optional<TensorRole> roleOf(const Binding &binding) {
  if (binding.tensor != kNoTensor)
    return tensorRule(binding.tensor).role;
  for (const Graph *graph : kGraphs)
    for (const GraphBuffer &buffer : graph->buffers)
      if (buffer.buffer == binding.buffer)
        return buffer.role;
  return std::nullopt;
}

const Graph &graphOf(const Spec &spec, const Maxima &maxima) {
  return sharesKeys(spec, maxima) ? kDecodeOfFew : *kGraphOf[static_cast<size_t>(spec.op)];
}

} // namespace nsa
