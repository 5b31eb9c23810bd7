// The names of the thresholds that are measured and stored (StoredRoute), and the problems that each holds for. A route
// guides problems that have no choice of their own. A choice that was measured for a problem comes before any route.
// Thread-safety: pure functions.
#pragma once

#include "cache/rows.h"
#include "runtime/base/problem.h"

#include <optional>
#include <string>
#include <string_view>

namespace nsa {

// The two templates that a threshold chooses between. Below it the simple template without tensor cores serves, and
// from it on the tile program.
inline constexpr std::string_view kTiledTemplate = "attention", kSimpleTemplate = "row_attention";

// The name of the route whose threshold is the least number of keys of a sequence from which the tile program is
// faster: "window.attention_from". There is one each for dense, window and cmp.
std::string attentionRoute(Operator op);
// Thresholds of templates are measured at batch 1 with as many queries as keys. Returns whether a call with these
// maxima uses the kernels that were measured. A call with few queries and many keys uses others, and so may a batch of
// short sequences.
bool isAsMeasured(const Spec &spec, const Maxima &maxima);

// The name of the route whose threshold is the greatest number of keys of a sequence up to which dense attention is
// faster, where the selection holds every block anyway.
inline constexpr std::string_view kDenseRoute = "sel.dense_up_to";
// Whether dense attention is faster with these maxima of nsa, which must be within sel_count * sel_block. One plan
// serves all lengths of a bucket, so the longest of them decides.
bool densePays(const StoredRoute &route, const Spec &spec, const Maxima &maxima);

// The name of the route for decode with few queries and maxima of this bucket: "decode.splits batch=64 seqlen_k=65536
// seqlen_q=1". Its threshold is at most how many programs share the keys of a query in each branch. "Never" means that
// no number is better than the rule's. "" where programs do not share keys.
std::string splitsRoute(const Spec &spec, const Maxima &maxima);
// The family that this route holds for.
std::string splitsFamily(const Spec &spec);

// The family that a threshold holds for, at all lengths: "window dtype=bf16 group=16 ... kv_heads=4".
std::string routeFamily(const Spec &spec);

} // namespace nsa
