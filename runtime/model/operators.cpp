#include "runtime/model/operators.h"

#include <algorithm>
#include <iterator>

namespace nsa {

namespace {

using enum Operand::Role;
using T = TensorName;
using V = View;

constexpr Operand kAttention[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                  {T::kKWin, T::kK, kIn, V::kK},
                                  {T::kVWin, T::kV, kIn, V::kV},
                                  {T::kKOffset, T::kKOffset, kIn, V::kKOffset},
                                  {T::kOut, T::kOut, kOut, V::kOut},
                                  {T::kLse, T::kLse, kOptionalOut, V::kLse},
                                  {T::kReads, T::kReads, kOptionalOut, V::kReads}};

// Weights, shared by compress and nsa.
#define NSA_PHI_OPERANDS                                                                                               \
  {T::kPeK, T::kPeK, kOptionalIn, V::kPeK}, {T::kPeV, T::kPeV, kOptionalIn, V::kPeV}, {T::kWK, T::kWK, kIn, V::kWK},   \
      {T::kWV, T::kWV, kIn, V::kWV}, {T::kBK, T::kBK, kOptionalIn, V::kBK}, {T::kBV, T::kBV, kOptionalIn, V::kBV},     \
      {T::kW1K, T::kW1K, kIn, V::kW1K}, {T::kW1V, T::kW1V, kIn, V::kW1V}, {T::kB1K, T::kB1K, kOptionalIn, V::kB1K},    \
      {T::kB1V, T::kB1V, kOptionalIn, V::kB1V}, {T::kW2K, T::kW2K, kIn, V::kW2K}, {T::kW2V, T::kW2V, kIn, V::kW2V},    \
      {T::kB2K, T::kB2K, kOptionalIn, V::kB2K}, {                                                                      \
    T::kB2V, T::kB2V, kOptionalIn, V::kB2V                                                                             \
  }

constexpr Operand kCompressOperands[] = {{T::kKCmp, T::kK, kIn, V::kK},
                                         {T::kVCmp, T::kV, kIn, V::kV},
                                         NSA_PHI_OPERANDS,
                                         {T::kKComp, T::kKComp, kOut, V::kKComp},
                                         {T::kVComp, T::kVComp, kOut, V::kVComp}};

constexpr Operand kCmpOperands[] = {{T::kQCmp, T::kQ, kIn, V::kQ},
                                    {T::kKComp, T::kKComp, kIn, V::kK},
                                    {T::kVComp, T::kVComp, kIn, V::kV},
                                    {T::kKOffset, T::kKOffset, kIn, V::kKOffset},
                                    {T::kOut, T::kOut, kOut, V::kOut},
                                    {T::kLse, T::kLse, kOptionalOut, V::kLse},
                                    {T::kReads, T::kReads, kOptionalOut, V::kReads}};

constexpr Operand kSelectOperands[] = {{T::kQCmp, T::kQ, kIn, V::kQ},
                                       {T::kKComp, T::kKComp, kIn, V::kK},
                                       {T::kLse, T::kLse, kOptionalIn, V::kLse},
                                       {T::kBlockList, T::kBlockList, kOut, V::kBlockList},
                                       {T::kBlockIndex, T::kBlockIndex, kOptionalOut, V::kBlockIndex}};

constexpr Operand kInvertOperands[] = {{T::kBlockList, T::kBlockList, kIn, V::kBlockList},
                                       {T::kBlockIndex, T::kBlockIndex, kOut, V::kBlockIndex}};

constexpr Operand kSelOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                    {T::kKSel, T::kK, kIn, V::kK},
                                    {T::kVSel, T::kV, kIn, V::kV},
                                    {T::kBlockList, T::kBlockList, kIn, V::kBlockList},
                                    {T::kOut, T::kOut, kOut, V::kOut},
                                    {T::kLse, T::kLse, kOptionalOut, V::kLse},
                                    {T::kReads, T::kReads, kOptionalOut, V::kReads}};

constexpr Operand kCombineOperands[] = {{T::kOCmp, T::kOCmp, kIn, V::kOCmp},
                                        {T::kOSel, T::kOSel, kIn, V::kOSel},
                                        {T::kOWin, T::kOWin, kIn, V::kOWin},
                                        {T::kGates, T::kGates, kIn, V::kGates},
                                        {T::kOut, T::kOut, kOut, V::kOut}};

constexpr Operand kCombineBwdOperands[] = {{T::kOCmp, T::kOCmp, kIn, V::kOCmp},
                                           {T::kOSel, T::kOSel, kIn, V::kOSel},
                                           {T::kOWin, T::kOWin, kIn, V::kOWin},
                                           {T::kGates, T::kGates, kIn, V::kGates},
                                           {T::kDOut, T::kDOut, kIn, V::kDOut},
                                           {T::kDGates, T::kDGates, kOut, V::kDGates},
                                           {T::kDOCmp, T::kDOCmp, kOptionalOut, V::kDOCmp},
                                           {T::kDOSel, T::kDOSel, kOptionalOut, V::kDOSel},
                                           {T::kDOWin, T::kDOWin, kOptionalOut, V::kDOWin}};

// The gradients of attention. A call binds d_k_win if it binds k_win, and d_k if it binds k.
#define NSA_ATTENTION_BWD_OPERANDS                                                                                     \
  {T::kOut, T::kOut, kIn, V::kOut}, {T::kLse, T::kLse, kIn, V::kLse}, {T::kDOut, T::kDOut, kIn, V::kDOut}, {           \
    T::kDelta, T::kDelta, kOptionalOut, V::kDelta                                                                      \
  }
constexpr Operand kAttentionBwdOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},       {T::kKWin, T::kK, kIn, V::kK},
                                             {T::kVWin, T::kV, kIn, V::kV},    NSA_ATTENTION_BWD_OPERANDS,
                                             {T::kDQ, T::kDQ, kOut, V::kDQ},   {T::kDKWin, T::kDK, kOut, V::kDK},
                                             {T::kDVWin, T::kDV, kOut, V::kDV}};
constexpr Operand kCmpBwdOperands[] = {{T::kQCmp, T::kQ, kIn, V::kQ},         {T::kKComp, T::kKComp, kIn, V::kK},
                                       {T::kVComp, T::kVComp, kIn, V::kV},    NSA_ATTENTION_BWD_OPERANDS,
                                       {T::kDQCmp, T::kDQ, kOut, V::kDQ},     {T::kDKComp, T::kDKComp, kOut, V::kDK},
                                       {T::kDVComp, T::kDVComp, kOut, V::kDV}};
#undef NSA_ATTENTION_BWD_OPERANDS
// What the tuner draws for the kernels of these gradients. Tokens are compressed blocks of one token.
constexpr Operand kDeltasOperands[] = {
    {T::kOut, T::kOut, kIn, V::kOut}, {T::kDOut, T::kDOut, kIn, V::kDOut}, {T::kDelta, T::kDelta, kOut, V::kDelta}};
constexpr Operand kAttentionDqOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},         {T::kKComp, T::kKComp, kIn, V::kK},
                                            {T::kVComp, T::kVComp, kIn, V::kV}, {T::kDOut, T::kDOut, kIn, V::kDOut},
                                            {T::kLse, T::kLse, kIn, V::kLse},   {T::kDelta, T::kDelta, kIn, V::kDelta},
                                            {T::kDQ, T::kDQ, kOut, V::kDQ}};
constexpr Operand kAttentionDkvOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                             {T::kKComp, T::kKComp, kIn, V::kK},
                                             {T::kVComp, T::kVComp, kIn, V::kV},
                                             {T::kDOut, T::kDOut, kIn, V::kDOut},
                                             {T::kLse, T::kLse, kIn, V::kLse},
                                             {T::kDelta, T::kDelta, kIn, V::kDelta},
                                             {T::kDKComp, T::kDKComp, kOut, V::kDK},
                                             {T::kDVComp, T::kDVComp, kOut, V::kDV}};

constexpr V kPartsViews[] = {V::kDkParts, V::kDvParts};
constexpr V kIndexViews[] = {V::kBlockList, V::kListLengths, V::kBlockCounts, V::kCountRows, V::kBlockIndex};
constexpr V kSumPartsViews[] = {V::kDkParts, V::kDvParts, V::kDK, V::kDV};

constexpr V kCombineViews[] = {V::kReadsCmp, V::kReadsSel, V::kReadsWin, V::kReads};
// What plans pass to the kernels of internal operators. Operators that one tile program defines, or that run in one
// kind of step, share a list: a kernel takes all tensors that its program declares.
constexpr V kSequencesViews[] = {V::kCuSeqlensQ, V::kCuSeqlensK, V::kKOffset, V::kCacheSeqlens, V::kBlockTable};
constexpr V kAppendViews[] = {V::kKCmp, V::kVCmp,      V::kKSel,      V::kVSel,      V::kKWin,
                              V::kVWin, V::kKSelCache, V::kVSelCache, V::kKWinCache, V::kVWinCache,
                              V::kKRaw, V::kVRaw,      V::kKStaged,   V::kVStaged};
constexpr V kSplitViews[] = {V::kQ,      V::kK,        V::kV,        V::kKWin,       V::kVWin,
                             V::kOSplit, V::kLseSplit, V::kLseHeads, V::kReadsSplit, V::kChoice};
constexpr V kScoresViews[] = {V::kQ, V::kK, V::kLseGroups, V::kScores, V::kScoreRows};
constexpr V kChooseViews[] = {V::kBlockList,  V::kScores,     V::kScoreRows, V::kScoreBlocks,
                              V::kBestScores, V::kBestBlocks, V::kChoiceRows};
constexpr V kMergeViews[] = {V::kOut,    V::kReads,    V::kGates,      V::kOCmp,   V::kOSel,   V::kOWin,  V::kLseSplit,
                             V::kOSlots, V::kLseSlots, V::kReadsSlots, V::kLseCmp, V::kLseSel, V::kLseWin};

// The views are of the kernel that first reads or writes the tensor.
constexpr Operand kNsaOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                    {T::kQCmp, T::kQ, kIn, V::kQ},
                                    {T::kKCmp, T::kK, kIn, V::kK},
                                    {T::kVCmp, T::kV, kIn, V::kV},
                                    {T::kKSel, T::kK, kIn, V::kK},
                                    {T::kVSel, T::kV, kIn, V::kV},
                                    {T::kKWin, T::kK, kIn, V::kK},
                                    {T::kVWin, T::kV, kIn, V::kV},
                                    NSA_PHI_OPERANDS,
                                    {T::kGates, T::kGates, kIn, V::kGates},
                                    {T::kOut, T::kOut, kOut, V::kOut},
                                    {T::kOCmp, T::kOCmp, kOptionalOut, V::kOut},
                                    {T::kOSel, T::kOSel, kOptionalOut, V::kOut},
                                    {T::kOWin, T::kOWin, kOptionalOut, V::kOut},
                                    {T::kLseCmp, T::kLseCmp, kOptionalOut, V::kLse},
                                    {T::kLseSel, T::kLseSel, kOptionalOut, V::kLse},
                                    {T::kLseWin, T::kLseWin, kOptionalOut, V::kLse},
                                    {T::kBlockList, T::kBlockList, kOptionalOut, V::kBlockList},
                                    {T::kBlockIndex, T::kBlockIndex, kOptionalOut, V::kBlockIndex},
                                    {T::kKComp, T::kKComp, kOptionalOut, V::kKComp},
                                    {T::kVComp, T::kVComp, kOptionalOut, V::kVComp},
                                    {T::kReads, T::kReads, kOptionalOut, V::kReads}};

// The new tokens as keys stand in the place of all keys; the cache has those and the earlier ones.
constexpr Operand kDecodeOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                       {T::kQCmp, T::kQ, kIn, V::kQ},
                                       {T::kKCmp, T::kK, kIn, V::kKCmp},
                                       {T::kVCmp, T::kV, kIn, V::kVCmp},
                                       {T::kKSel, T::kK, kIn, V::kKSel},
                                       {T::kVSel, T::kV, kIn, V::kVSel},
                                       {T::kKWin, T::kK, kIn, V::kKWin},
                                       {T::kVWin, T::kV, kIn, V::kVWin},
                                       NSA_PHI_OPERANDS,
                                       {T::kGates, T::kGates, kIn, V::kGates},
                                       {T::kKSelCache, T::kKCache, kInOut, V::kKSelCache},
                                       {T::kVSelCache, T::kVCache, kInOut, V::kVSelCache},
                                       {T::kKWinCache, T::kKCache, kInOut, V::kKWinCache},
                                       {T::kVWinCache, T::kVCache, kInOut, V::kVWinCache},
                                       {T::kKCompCache, T::kKCompCache, kInOut, V::kKComp},
                                       {T::kVCompCache, T::kVCompCache, kInOut, V::kVComp},
                                       {T::kKRaw, T::kKRaw, kInOut, V::kKRaw},
                                       {T::kVRaw, T::kVRaw, kInOut, V::kVRaw},
                                       {T::kOut, T::kOut, kOut, V::kOut},
                                       {T::kOCmp, T::kOCmp, kOptionalOut, V::kOut},
                                       {T::kOSel, T::kOSel, kOptionalOut, V::kOut},
                                       {T::kOWin, T::kOWin, kOptionalOut, V::kOut},
                                       {T::kLseCmp, T::kLseCmp, kOptionalOut, V::kLse},
                                       {T::kLseSel, T::kLseSel, kOptionalOut, V::kLse},
                                       {T::kLseWin, T::kLseWin, kOptionalOut, V::kLse},
                                       {T::kBlockList, T::kBlockList, kOptionalOut, V::kBlockList},
                                       {T::kReads, T::kReads, kOptionalOut, V::kReads}};
#undef NSA_PHI_OPERANDS

constexpr Operand kRotateOperands[] = {{T::kX, T::kX, kIn, V::kX},
                                       {T::kCos, T::kCos, kOptionalIn, V::kCos},
                                       {T::kSin, T::kSin, kOptionalIn, V::kSin},
                                       {T::kOut, T::kOut, kOut, V::kRotated}};

constexpr uint32_t kAttentionFields = kHeads | kQk | kV;
constexpr uint32_t kForwardFields =
    kAttentionFields | kWindowField | kCmpGeometry | kPhi | kSelGeometry | kForced | kGates;
constexpr uint32_t kTokensConstants = kLayoutConstant | kPageConstant;

using enum OperatorDef::Tuning;
using enum OperatorDef::ElementRule;
using Lengths = OperatorDef::Lengths;

} // namespace

constexpr OperatorDef kOperatorTable[] = {
    {.op = Operator::kDense,
     .name = "dense",
     .abi = 0,
     .fields = kAttentionFields | kKeyOffsetField,
     .constants = kTokensConstants | kRowsConstant,
     .tuning = kAlone,
     .keys = MetKeys::kAll,
     .definingTemplate = "attention",
     .operands = kAttention},
    {.op = Operator::kWindow,
     .name = "window",
     .abi = 1,
     .fields = kAttentionFields | kWindowField | kKeyOffsetField,
     .constants = kTokensConstants | kRowsConstant,
     .tuning = kAlone,
     .keys = MetKeys::kWindow,
     .definingTemplate = "attention",
     .operands = kAttention},
    {.op = Operator::kCompress,
     .name = "compress",
     .abi = 2,
     .fields = kQk | kV | kCmpGeometry | kPhi,
     .constants = kTokensConstants,
     .lengths = Lengths::kKeys,
     .tuning = kAlone,
     .operands = kCompressOperands},
    {.op = Operator::kCmp,
     .name = "cmp",
     .abi = 3,
     .fields = kAttentionFields | kCmpGeometry | kKeyOffsetField,
     .constants = kTokensConstants | kRowsConstant,
     .tuning = kAlone,
     .keys = MetKeys::kBlocks,
     .definingTemplate = "attention",
     .operands = kCmpOperands},
    {.op = Operator::kSelect,
     .name = "select",
     .abi = 4,
     .fields = kHeads | kQk | kCmpGeometry | kSelGeometry | kForced,
     .constants = kTokensConstants,
     .tuning = kAlone,
     .keys = MetKeys::kBlocks,
     .operands = kSelectOperands},
    {.op = Operator::kSel,
     .name = "sel",
     .abi = 5,
     .fields = kAttentionFields | kSelGeometry,
     .constants = kTokensConstants,
     .tuning = kAlone,
     .keys = MetKeys::kListed,
     .operands = kSelOperands},
    {.op = Operator::kCombine,
     .name = "combine",
     .abi = 6,
     .fields = kHeads | kV | kGates,
     .constants = kLayoutConstant,
     .lengths = Lengths::kQueries,
     .tuning = kAlone,
     .operands = kCombineOperands,
     .planViews = kCombineViews},
    {.op = Operator::kNsa,
     .name = "nsa",
     .abi = 7,
     .fields = kForwardFields,
     .tuning = kNone,
     .isWhole = true,
     .counterpart = Operator::kDecode,
     .operands = kNsaOperands},
    {.op = Operator::kDecode,
     .name = "decode",
     .abi = 8,
     .fields = kForwardFields | kPages,
     .tuning = kNone,
     .isWhole = true,
     .hasCache = true,
     .counterpart = Operator::kNsa,
     .operands = kDecodeOperands},
    {.op = Operator::kRotate,
     .name = "rotate",
     .abi = 9,
     .fields = kQk | kRotary,
     .constants = kLayoutConstant,
     .tuning = kAlone,
     .operands = kRotateOperands},
    {.op = Operator::kRotateBwd,
     .name = "rotate_bwd",
     .abi = 10,
     .fields = kQk | kRotary,
     .constants = kLayoutConstant,
     .tuning = kAlone,
     .gradientOf = Operator::kRotate,
     .operands = kRotateOperands},
    {.op = Operator::kCombineBwd,
     .name = "combine_bwd",
     .abi = 11,
     .fields = kHeads | kV | kGates,
     .constants = kLayoutConstant,
     .lengths = Lengths::kQueries,
     .tuning = kAlone,
     .gradientOf = Operator::kCombine,
     .operands = kCombineBwdOperands},
    {.op = Operator::kDenseBwd,
     .name = "dense_bwd",
     .abi = 12,
     .fields = kAttentionFields,
     .constants = kLayoutConstant,
     .tuning = kNone,
     .keys = MetKeys::kAll,
     .isWhole = true,
     .gradientOf = Operator::kDense,
     .operands = kAttentionBwdOperands},
    {.op = Operator::kWindowBwd,
     .name = "window_bwd",
     .abi = 13,
     .fields = kAttentionFields | kWindowField,
     .constants = kLayoutConstant,
     .tuning = kNone,
     .keys = MetKeys::kWindow,
     .isWhole = true,
     .gradientOf = Operator::kWindow,
     .operands = kAttentionBwdOperands},
    {.op = Operator::kCmpBwd,
     .name = "cmp_bwd",
     .abi = 14,
     .fields = kAttentionFields | kCmpGeometry,
     .constants = kLayoutConstant,
     .tuning = kNone,
     .keys = MetKeys::kBlocks,
     .isWhole = true,
     .gradientOf = Operator::kCmp,
     .operands = kCmpBwdOperands},
    {.op = Operator::kInvert,
     .name = "invert",
     .abi = 15,
     .fields = kSelGeometry,
     .constants = kLayoutConstant,
     .tuning = kNone,
     .isWhole = true,
     .operands = kInvertOperands},
    {.op = Operator::kSequences,
     .name = "sequences",
     .fields = kCmpGeometry | kKeyOffsetField,
     .element = kF32,
     .lengths = Lengths::kNone,
     .tuning = kNone,
     .servesAllLengths = true,
     .planViews = kSequencesViews},
    {.op = Operator::kCacheSequences,
     .name = "cache_sequences",
     .fields = kCmpGeometry | kPages,
     .constants = kPageConstant,
     .element = kF32,
     .lengths = Lengths::kNone,
     .tuning = kNone,
     .servesAllLengths = true,
     .planViews = kSequencesViews},
    {.op = Operator::kAppend,
     .name = "append",
     .fields = kQk | kV | kCmpGeometry | kPages,
     .constants = kPageConstant,
     .tuning = kInDecode,
     .planViews = kAppendViews},
    {.op = Operator::kSplitCmp,
     .name = "split_cmp",
     .fields = kAttentionFields | kCmpGeometry | kPages,
     .constants = kPageConstant,
     .tuning = kInDecode,
     .planViews = kSplitViews},
    {.op = Operator::kSplitSelWin,
     .name = "split_sel_win",
     .fields = kAttentionFields | kSelGeometry | kWindowField | kPages,
     .constants = kPageConstant,
     .tuning = kInDecode,
     .planViews = kSplitViews},
    {.op = Operator::kScores,
     .name = "scores",
     .fields = kHeads | kQk | kCmpGeometry | kSelGeometry | kPages,
     .constants = kPageConstant | kQueriesConstant,
     .tuning = kInDecode,
     .planViews = kScoresViews},
    {.op = Operator::kRank,
     .name = "rank",
     .fields = kSelGeometry | kForced,
     .constants = kQueriesConstant | kSegmentConstant,
     .element = kF32,
     .tuning = kInDecode,
     .planViews = kChooseViews},
    {.op = Operator::kChoose,
     .name = "choose",
     .fields = kSelGeometry | kForced,
     .constants = kQueriesConstant | kSegmentConstant,
     .element = kF32,
     .tuning = kInDecode,
     .planViews = kChooseViews},
    {.op = Operator::kAscend,
     .name = "ascend",
     .fields = kSelGeometry | kForced,
     .element = kF32,
     .tuning = kNone,
     .planViews = kChooseViews},
    {.op = Operator::kMerge,
     .name = "merge",
     .fields = kHeads | kV | kGates,
     .constants = kSlotsConstant,
     .tuning = kInDecode,
     .planViews = kMergeViews},
    {.op = Operator::kDeltas,
     .name = "deltas",
     .fields = kHeads | kV,
     .constants = kLayoutConstant,
     .tuning = kAlone,
     .operands = kDeltasOperands},
    {.op = Operator::kAttentionDq,
     .name = "attention_dq",
     .fields = kAttentionFields | kCmpGeometry | kWindowField,
     .constants = kLayoutConstant,
     .tuning = kAlone,
     .keys = MetKeys::kWindow,
     .operands = kAttentionDqOperands},
    {.op = Operator::kAttentionDkv,
     .name = "attention_dkv",
     .fields = kAttentionFields | kCmpGeometry | kWindowField,
     .constants = kLayoutConstant,
     .tuning = kAlone,
     .keys = MetKeys::kWindow,
     .operands = kAttentionDkvOperands,
     .planViews = kPartsViews},
    {.op = Operator::kSumParts,
     .name = "sum_parts",
     .fields = kQk | kV | kCmpGeometry,
     .constants = kLayoutConstant,
     .tuning = kNone,
     .planViews = kSumPartsViews},
    {.op = Operator::kIndexLengths,
     .name = "index_lengths",
     .fields = kSelGeometry,
     .constants = kLayoutConstant,
     .element = kF32,
     .tuning = kNone,
     .planViews = kIndexViews},
    {.op = Operator::kIndexCounts,
     .name = "index_counts",
     .fields = kSelGeometry,
     .constants = kLayoutConstant,
     .element = kF32,
     .tuning = kNone,
     .planViews = kIndexViews},
    {.op = Operator::kIndexFill,
     .name = "index_fill",
     .fields = kSelGeometry,
     .constants = kLayoutConstant,
     .element = kF32,
     .tuning = kNone,
     .planViews = kIndexViews},
};

namespace {

constexpr size_t kPublicCount = std::ranges::count_if(kOperatorTable, &OperatorDef::isPublic);

constexpr bool isConsistent(size_t index) {
  const OperatorDef &def = kOperatorTable[index];
  const bool isPublic = index < kPublicCount;
  const bool writesState =
      std::ranges::any_of(def.operands, [](const Operand &operand) { return operand.role == kInOut; });
  return def.op == static_cast<Operator>(index) &&
         def.abi == (isPublic ? static_cast<int>(index) : OperatorDef::kInternal) &&
         (isPublic || def.tuning == kAlone) == !def.operands.empty() && def.hasCache == writesState &&
         (def.isWhole || def.counterpart == def.op) &&
         kOperatorTable[static_cast<size_t>(def.counterpart)].counterpart == def.op &&
         std::ranges::count(kOperatorTable, def.name, &OperatorDef::name) == 1;
}
static_assert(std::size(kOperatorTable) == kOperators);
static_assert([] {
  for (size_t i = 0; i < std::size(kOperatorTable); ++i)
    if (!isConsistent(i))
      return false;
  return true;
}());

} // namespace

std::span<const OperatorDef> operatorTable() { return kOperatorTable; }

std::span<const OperatorDef> publicOperators() { return operatorTable().first(kPublicCount); }

const OperatorDef *findOperator(std::string_view name) {
  const OperatorDef *found = std::ranges::find(kOperatorTable, name, &OperatorDef::name);
  return found == std::end(kOperatorTable) ? nullptr : found;
}

const OperatorDef *findPublicOperator(int abi) {
  return abi >= 0 && abi < static_cast<int>(kPublicCount) ? &kOperatorTable[abi] : nullptr;
}

bool OperatorDef::mayTake(View view) const {
  return operandOf(view) || view == View::kSequences || view == View::kStatus ||
         std::ranges::find(planViews, view) != planViews.end();
}

std::vector<std::string_view> OperatorDef::viewNames() const {
  std::vector<std::string_view> names;
  for (int i = 0; i < kViews; ++i)
    if (mayTake(static_cast<View>(i)))
      names.push_back(viewRule(static_cast<View>(i)).name);
  return names;
}

const Operand *OperatorDef::operandOf(View view) const {
  const auto found = std::ranges::find(operands, view, &Operand::view);
  return found == operands.end() ? nullptr : &*found;
}

const Operand *OperatorDef::operandOf(TensorName tensor) const {
  const auto found = std::ranges::find(operands, tensor, &Operand::name);
  return found == operands.end() ? nullptr : &*found;
}

std::string namesOf(std::span<const OperatorDef> operators) {
  std::string names;
  for (const OperatorDef &def : operators)
    names.append(names.empty() ? "" : ", ").append(def.name);
  return names;
}

bool isTuned(std::string_view op) {
  const OperatorDef *found = findOperator(op);
  return !found || isTuned(found->op);
}

} // namespace nsa
