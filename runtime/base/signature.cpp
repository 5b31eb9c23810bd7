#include "runtime/base/signature.h"

#include <iterator>

namespace nsa {

namespace {

using enum Axis;
using enum ElementType;
using T = TensorName;

constexpr std::string_view kTensorNameTexts[] = {"q",
                                                 "k",
                                                 "v",
                                                 "k_win",
                                                 "v_win",
                                                 "out",
                                                 "lse",
                                                 "cu_seqlens_q",
                                                 "cu_seqlens_k",
                                                 "q_cmp",
                                                 "k_cmp",
                                                 "v_cmp",
                                                 "k_sel",
                                                 "v_sel",
                                                 "k_comp",
                                                 "v_comp",
                                                 "block_list",
                                                 "gates",
                                                 "o_cmp",
                                                 "o_sel",
                                                 "o_win",
                                                 "lse_cmp",
                                                 "lse_sel",
                                                 "lse_win",
                                                 "reads",
                                                 "pe_k",
                                                 "pe_v",
                                                 "w_k",
                                                 "w_v",
                                                 "b_k",
                                                 "b_v",
                                                 "w1_k",
                                                 "w1_v",
                                                 "b1_k",
                                                 "b1_v",
                                                 "w2_k",
                                                 "w2_v",
                                                 "b2_k",
                                                 "b2_v",
                                                 "k_cache",
                                                 "v_cache",
                                                 "k_sel_cache",
                                                 "v_sel_cache",
                                                 "k_win_cache",
                                                 "v_win_cache",
                                                 "k_comp_cache",
                                                 "v_comp_cache",
                                                 "k_raw",
                                                 "v_raw",
                                                 "block_table",
                                                 "cache_seqlens"};
static_assert(std::size(kTensorNameTexts) == kTensorNames);

constexpr TensorRule kQueryRows = {kOwn, Lead::kQueries, 2, {kQueryHeads, kQkDim}, true};
constexpr TensorRule kKeyRows = {kOwn, Lead::kKeys, 2, {kKvHeads, kQkDim}, true};
constexpr TensorRule kValueRows = {kOwn, Lead::kKeys, 2, {kKvHeads, kVDim}, true};
constexpr TensorRule kOutRows = {kOwn, Lead::kQueries, 2, {kQueryHeads, kVDim}, true};
constexpr TensorRule kLseRule = {kF32, Lead::kQueries, 1, {kQueryHeads}, false};
constexpr TensorRule kKeyCache = {kOwn, Lead::kCache, 2, {kKvHeads, kQkDim}, true};
constexpr TensorRule kValueCache = {kOwn, Lead::kCache, 2, {kKvHeads, kVDim}, true};
constexpr TensorRule kOffsets = {kI32, Lead::kNone, 0, {}, false};

constexpr TensorRule kTensorRules[] = {
    kQueryRows,                                                // q
    kKeyRows,                                                  // k
    kValueRows,                                                // v
    kKeyRows,                                                  // k_win
    kValueRows,                                                // v_win
    kOutRows,                                                  // out
    kLseRule,                                                  // lse
    kOffsets,                                                  // cu_seqlens_q
    kOffsets,                                                  // cu_seqlens_k
    kQueryRows,                                                // q_cmp
    kKeyRows,                                                  // k_cmp
    kValueRows,                                                // v_cmp
    kKeyRows,                                                  // k_sel
    kValueRows,                                                // v_sel
    {kOwn, Lead::kBlocks, 2, {kKvHeads, kQkDim}, true},        // k_comp
    {kOwn, Lead::kBlocks, 2, {kKvHeads, kVDim}, true},         // v_comp
    {kI32, Lead::kQueries, 2, {kKvHeads, kSelCount}, false},   // block_list
    {kOwn, Lead::kQueries, 2, {kGateHeads, kBranches}, false}, // gates
    kOutRows,                                                  // o_cmp
    kOutRows,                                                  // o_sel
    kOutRows,                                                  // o_win
    kLseRule,                                                  // lse_cmp
    kLseRule,                                                  // lse_sel
    kLseRule,                                                  // lse_win
    {kI32, Lead::kQueries, 1, {kKvHeads}, false},              // reads
    {kOwn, Lead::kNone, 2, {kCmpBlock, kQkDim}, true},         // pe_k
    {kOwn, Lead::kNone, 2, {kCmpBlock, kVDim}, true},          // pe_v
    {kOwn, Lead::kNone, 3, {kCmpBlock, kQkDim, kQkDim}, true}, // w_k
    {kOwn, Lead::kNone, 3, {kCmpBlock, kVDim, kVDim}, true},   // w_v
    {kOwn, Lead::kNone, 1, {kQkDim}, true},                    // b_k
    {kOwn, Lead::kNone, 1, {kVDim}, true},                     // b_v
    {kOwn, Lead::kNone, 2, {kBlockQk, kHidden}, true},         // w1_k
    {kOwn, Lead::kNone, 2, {kBlockV, kHidden}, true},          // w1_v
    {kOwn, Lead::kNone, 1, {kHidden}, true},                   // b1_k
    {kOwn, Lead::kNone, 1, {kHidden}, true},                   // b1_v
    {kOwn, Lead::kNone, 2, {kHidden, kQkDim}, true},           // w2_k
    {kOwn, Lead::kNone, 2, {kHidden, kVDim}, true},            // w2_v
    {kOwn, Lead::kNone, 1, {kQkDim}, true},                    // b2_k
    {kOwn, Lead::kNone, 1, {kVDim}, true},                     // b2_v
    kKeyCache,                                                 // k_cache
    kValueCache,                                               // v_cache
    kKeyCache,                                                 // k_sel_cache
    kValueCache,                                               // v_sel_cache
    kKeyCache,                                                 // k_win_cache
    kValueCache,                                               // v_win_cache
    {kOwn, Lead::kCacheBlocks, 2, {kKvHeads, kQkDim}, true},   // k_comp_cache
    {kOwn, Lead::kCacheBlocks, 2, {kKvHeads, kVDim}, true},    // v_comp_cache
    {kOwn, Lead::kRing, 2, {kKvHeads, kQkDim}, true},          // k_raw
    {kOwn, Lead::kRing, 2, {kKvHeads, kVDim}, true},           // v_raw
    kOffsets,                                                  // block_table
    kOffsets,                                                  // cache_seqlens
};
static_assert(std::size(kTensorRules) == kTensorNames);

} // namespace

std::string_view tensorName(TensorName name) { return kTensorNameTexts[static_cast<size_t>(name)]; }

const TensorRule &tensorRule(TensorName name) { return kTensorRules[static_cast<size_t>(name)]; }

int64_t axisExtent(Axis axis, const Spec &spec) {
  switch (axis) {
  case kQueryHeads:
    return spec.queryHeads;
  case kKvHeads:
    return spec.kvHeads;
  case kGateHeads:
    return spec.gatePerGroup ? spec.kvHeads : spec.queryHeads;
  case kQkDim:
    return spec.qkDim;
  case kVDim:
    return spec.vDim;
  case kSelCount:
    return spec.selCount;
  case kBranches:
    return 3;
  case kCmpBlock:
    return spec.cmpBlock;
  case kBlockQk:
    return int64_t{spec.cmpBlock} * spec.qkDim;
  case kBlockV:
    return int64_t{spec.cmpBlock} * spec.vDim;
  case kHidden:
    return spec.mlpHidden;
  }
  return 0;
}

std::string_view axisSource(Axis axis) {
  constexpr std::string_view kSources[] = {
      "query_heads", "kv_heads",           "gate heads",        "qk_dim",    "v_dim", "sel_count", "cmp, sel, win",
      "cmp_block",   "cmp_block * qk_dim", "cmp_block * v_dim", "mlp_hidden"};
  return kSources[static_cast<size_t>(axis)];
}

bool takes(const Spec &spec, TensorName name) {
  const bool importance = !isWhole(spec.op) || spec.hasBranch(kBranchCmp) || spec.hasBranch(kBranchSel);
  const auto branch = [&](int32_t bit) { return !(fieldsOf(spec.op) & kGates) || spec.hasBranch(bit); };
  switch (name) {
  case T::kPeK:
  case T::kPeV:
    return importance && spec.cmpKind != CmpKind::kMean;
  case T::kWK:
  case T::kWV:
  case T::kBK:
  case T::kBV:
    return importance && spec.cmpKind == CmpKind::kLinear;
  case T::kW1K:
  case T::kW1V:
  case T::kB1K:
  case T::kB1V:
  case T::kW2K:
  case T::kW2V:
  case T::kB2K:
  case T::kB2V:
    return importance && spec.cmpKind == CmpKind::kMlp;
  case T::kKCmp:
  case T::kVCmp:
  case T::kQCmp:
  case T::kKComp:
  case T::kVComp:
  case T::kKCompCache:
  case T::kVCompCache:
  case T::kKRaw:
  case T::kVRaw:
    return importance;
  case T::kOCmp:
  case T::kLseCmp:
    return branch(kBranchCmp);
  case T::kKSel:
  case T::kVSel:
  case T::kOSel:
  case T::kLseSel:
  case T::kKSelCache:
  case T::kVSelCache:
  case T::kBlockList:
    return branch(kBranchSel);
  case T::kKWin:
  case T::kVWin:
  case T::kKWinCache:
  case T::kVWinCache:
  case T::kOWin:
  case T::kLseWin:
    return branch(kBranchWin);
  default:
    return true;
  }
}

} // namespace nsa
