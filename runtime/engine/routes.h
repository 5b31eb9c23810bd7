// The names of the thresholds that tuning measures and stores (StoredRoute), and for which problems each threshold
// applies. A stored threshold decides about problems for which no measured choice is stored. If a measured choice is
// stored for a problem, no stored threshold has an effect on this problem.
// Thread-safety: pure functions.
#pragma once

#include "cache/rows.h"
#include "runtime/base/problem.h"

#include <optional>
#include <string>
#include <string_view>

namespace nsa {

// The two attention templates that the threshold of an attention route chooses between. For fewer keys than the
// threshold of an attention route, the kernel is made from the simple template, which uses no tensor cores; otherwise
// from the tile program.
inline constexpr std::string_view kTiledTemplate = "attention", kSimpleTemplate = "row_attention";

// Returns the name of an operator's attention route: "window.attention_from". The threshold of an attention route is
// the least number of keys of a sequence from which on the tile program is faster than the simple template. Only dense,
// window and cmp have an attention route.
std::string attentionRoute(Operator op);
// Thresholds of templates are measured at batch 1 with as many queries as keys. Returns whether a call with these
// maxima uses the same kernels as the calls with which the threshold of a template is measured. The result is false for
// calls with few queries and many keys and for some batches of short sequences, because such calls use other kernels
// than the measurement of a threshold.
bool isAsMeasured(const Spec &spec, const Maxima &maxima);

// The name of the route for nsa with maxima at which the selection contains all blocks. The threshold of the route
// `sel.dense_up_to` is the greatest number of keys of a sequence up to which dense attention is faster than attention
// over the block list.
inline constexpr std::string_view kDenseRoute = "sel.dense_up_to";
// Returns whether dense attention is faster than attention over the block list in a call of nsa with these maxima. A
// sequence must have at most sel_count * sel_block keys. One plan is used for all lengths of a bucket, so densePays
// compares the greatest length of the bucket with the threshold.
bool densePays(const StoredRoute &route, const Spec &spec, const Maxima &maxima);

// Returns the name of the route for decode with few queries and maxima of this bucket: "decode.splits batch=64
// seqlen_k=65536 seqlen_q=1"; "" where programs do not share keys. The threshold of a splits route is the number of
// programs that share the keys of a query in each branch; a branch with few keys has fewer programs. The threshold
// "never" means that no measured number of programs was faster than the number that the rule of docs/operators.md
// gives.
std::string splitsRoute(const Spec &spec, const Maxima &maxima);
// Returns a text that is the same for all problems to which one threshold of splitsRoute applies.
std::string splitsFamily(const Spec &spec);

// Returns a text that is the same for all problems to which one threshold applies, whatever their lengths are: "window
// dtype=bf16 group=16 ... kv_heads=4".
std::string routeFamily(const Spec &spec);

} // namespace nsa
