#include "runtime/base/kernel_arguments.h"

#include <algorithm>
#include <iterator>

namespace nsa {

namespace {

using enum ElementType;
using Kind = ManifestParam::Kind;

constexpr ViewRule kViewRules[] = {{"q", 3, kOwn},
                                   {"k", 3, kOwn},
                                   {"v", 3, kOwn},
                                   {"out", 3, kOwn},
                                   {"lse", 3, kF32},
                                   {"reads", 3, kI32},
                                   {"block_list", 4, kI32},
                                   {"k_comp", 3, kOwn},
                                   {"v_comp", 3, kOwn},
                                   {"gates", 4, kOwn},
                                   {"o_cmp", 3, kOwn},
                                   {"o_sel", 3, kOwn},
                                   {"o_win", 3, kOwn},
                                   {"reads_cmp", 3, kI32},
                                   {"reads_sel", 3, kI32},
                                   {"reads_win", 3, kI32},
                                   {"pe_k", 1, kOwn},
                                   {"pe_v", 1, kOwn},
                                   {"w_k", 2, kOwn},
                                   {"w_v", 2, kOwn},
                                   {"b_k", 1, kOwn},
                                   {"b_v", 1, kOwn},
                                   {"w1_k", 2, kOwn},
                                   {"w1_v", 2, kOwn},
                                   {"b1_k", 1, kOwn},
                                   {"b1_v", 1, kOwn},
                                   {"w2_k", 1, kOwn},
                                   {"w2_v", 1, kOwn},
                                   {"b2_k", 1, kOwn},
                                   {"b2_v", 1, kOwn},
                                   {"sequences", 2, kI32},
                                   {"cu_seqlens_q", 1, kI32},
                                   {"cu_seqlens_k", 1, kI32},
                                   {"status", 1, kI32},
                                   {"k_cmp", 3, kOwn},
                                   {"v_cmp", 3, kOwn},
                                   {"k_sel", 3, kOwn},
                                   {"v_sel", 3, kOwn},
                                   {"k_win", 3, kOwn},
                                   {"v_win", 3, kOwn},
                                   {"k_sel_cache", 3, kOwn},
                                   {"v_sel_cache", 3, kOwn},
                                   {"k_win_cache", 3, kOwn},
                                   {"v_win_cache", 3, kOwn},
                                   {"k_raw", 3, kOwn},
                                   {"v_raw", 3, kOwn},
                                   {"k_staged", 3, kOwn},
                                   {"v_staged", 3, kOwn},
                                   {"cache_seqlens", 1, kI32},
                                   {"block_table", 2, kI32},
                                   {"o_split", 3, kF32},
                                   {"lse_split", 3, kF32},
                                   {"lse_heads", 3, kF32},
                                   {"reads_split", 3, kI32},
                                   {"lse_groups", 3, kF32},
                                   {"scores", 3, kF32},
                                   {"score_rows", 3, kF32},
                                   {"o_slots", 3, kF32},
                                   {"lse_slots", 2, kF32},
                                   {"reads_slots", 2, kI32},
                                   {"lse_cmp", 3, kF32},
                                   {"lse_sel", 3, kF32},
                                   {"lse_win", 3, kF32},
                                   {"score_blocks", 3, kI32},
                                   {"best_scores", 3, kF32},
                                   {"best_blocks", 3, kI32},
                                   {"choice", 3, kI32},
                                   {"choice_rows", 2, kI32}};
static_assert(std::size(kViewRules) == kViews);

constexpr ScalarRule kScalarRules[] = {
    {"seqlen_q", Kind::kI32},       {"seqlen_k", Kind::kI32},       {"max_seqlen_q", Kind::kI32},
    {"max_seqlen_k", Kind::kI32},   {"total_q", Kind::kI32},        {"total_k", Kind::kI32},
    {"total_c", Kind::kI32},        {"query_begin", Kind::kI32},    {"query_end", Kind::kI32},
    {"window", Kind::kI32},         {"init_blocks", Kind::kI32},    {"local_blocks", Kind::kI32},
    {"scale_log2", Kind::kF32},     {"batch", Kind::kI32},          {"capacity", Kind::kI32},
    {"pages", Kind::kI32},          {"splits", Kind::kI32},         {"sel_splits", Kind::kI32},
    {"lists", Kind::kI32},          {"first_split", Kind::kI32},    {"past_cmp_split", Kind::kI32},
    {"past_sel_split", Kind::kI32}, {"past_win_split", Kind::kI32}, {"kv_heads", Kind::kI32}};
static_assert(std::size(kScalarRules) == kScalars);

constexpr GridSizeRule kGridSizes[] = {{"batch", &GridSizes::batch},
                                       {"kv_heads", &GridSizes::kvHeads},
                                       {"query_heads", &GridSizes::queryHeads},
                                       {"group", &GridSizes::group},
                                       {"max_seqlen_q", &GridSizes::maxSeqlenQ},
                                       {"max_seqlen_k", &GridSizes::maxSeqlenK},
                                       {"max_tokens_q", &GridSizes::maxTokensQ},
                                       {"max_blocks_c", &GridSizes::maxBlocksC},
                                       {"splits", &GridSizes::splits}};

} // namespace

DType elementDType(ElementType type, DType own) {
  return type == kOwn ? own : type == kF32 ? DType::kF32 : DType::kI32;
}

const ViewRule &viewRule(View view) { return kViewRules[static_cast<size_t>(view)]; }

const ScalarRule &scalarRule(Scalar scalar) { return kScalarRules[static_cast<size_t>(scalar)]; }

const GridSizeRule *findGridSize(std::string_view name) {
  const auto *found = std::find_if(std::begin(kGridSizes), std::end(kGridSizes),
                                   [&](const GridSizeRule &rule) { return rule.name == name; });
  return found == std::end(kGridSizes) ? nullptr : found;
}

GridSizes GridSizes::ofMaxima(const Spec &spec, const Maxima &maxima) {
  GridSizes sizes;
  sizes.batch = maxima.batch;
  sizes.kvHeads = spec.kvHeads;
  sizes.queryHeads = spec.queryHeads;
  sizes.group = spec.group();
  sizes.maxSeqlenQ = maxima.seqlenQ;
  sizes.maxSeqlenK = maxima.seqlenK;
  sizes.maxTokensQ = maxima.tokensQ;
  sizes.maxBlocksC = spec.compressedBlocks(maxima.seqlenK);
  return sizes;
}

} // namespace nsa
