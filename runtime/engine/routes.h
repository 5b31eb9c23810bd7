// Names of the thresholds that are measured and stored (StoredRoute), and what they hold for. A route guides problems
// that have no choice of their own; a choice that was measured for the problem itself comes first. Thread-safety: pure
// functions.
#pragma once

#include "cache/rows.h"
#include "runtime/base/problem.h"

#include <optional>
#include <string>
#include <string_view>

namespace nsa {

// The templates that a threshold lies between: below it the simple one without tensor cores, from it on the tile
// program.
inline constexpr std::string_view kTiledTemplate = "attention", kSimpleTemplate = "row_attention";

// "window.attention_from": the fewest keys of a sequence from which the tile program pays. For dense, window and cmp.
std::string attentionRoute(Operator op);
// Thresholds of templates are measured at batch 1 with as many queries as keys. Whether a call's kernels are those
// that were: few queries before many keys have others, and a batch of short sequences may have, too.
bool isAsMeasured(const Spec &spec, const Maxima &maxima);

// The most keys of a sequence up to which dense attention pays where the selection holds every block anyway.
inline constexpr std::string_view kDenseRoute = "sel.dense_up_to";
// Whether it pays with these maxima of nsa, which are within sel_count * sel_block. One plan serves all lengths of a
// bucket, so the longest of them decides.
bool densePays(const StoredRoute &route, const Spec &spec, const Maxima &maxima);

// "decode.splits batch=64 seqlen_k=65536 seqlen_q=1": of decode's few queries, with maxima of this bucket, how many
// programs at most share the keys of one in each branch; "never": the rule's number is as good as any. Nothing where
// programs do not share keys.
std::string splitsRoute(const Spec &spec, const Maxima &maxima);
// What it holds for.
std::string splitsFamily(const Spec &spec);

// What a threshold holds for, at all lengths: "window dtype=bf16 group=16 ... kv_heads=4".
std::string routeFamily(const Spec &spec);

} // namespace nsa
