#include "runtime/base/kernel_arguments.h"

#include <algorithm>
#include <iterator>

namespace nsa {

namespace {

constexpr GridSizeRule kGridSizes[] = {{"batch", &GridSizes::batch},
                                       {"kv_heads", &GridSizes::kvHeads},
                                       {"query_heads", &GridSizes::queryHeads},
                                       {"group", &GridSizes::group},
                                       {"max_seqlen_q", &GridSizes::maxSeqlenQ},
                                       {"max_seqlen_k", &GridSizes::maxSeqlenK},
                                       {"max_tokens_q", &GridSizes::maxTokensQ},
                                       {"max_blocks_c", &GridSizes::maxBlocksC},
                                       {"splits", &GridSizes::splits},
                                       {"multiprocessors", nullptr}};

} // namespace

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
