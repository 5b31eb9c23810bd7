// The names of the thresholds that `nsa bench thresholds --store` measures and stores, and for which problems each
// threshold applies. A named threshold is called a route (StoredRoute). The threshold of an attention route has an
// effect only on problems for which no choice is stored. The thresholds of the routes sel.dense_up_to and decode.splits
// decide which problems a plan has, before choices are looked up. Thread-safety: pure functions.
#pragma once

#include "cache/rows/rows.h"
#include "runtime/base/key_splits.h"
#include "runtime/base/problem.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace nsa {

// What the options of an engine say about routes (EngineOptions::routeRules).
struct RouteRules {
  int decodeSplits = 0;          // for Spec::keySplits; 0: as measured, else as the rule says
  bool ignoreThresholds = false; // measured thresholds decide nothing
  bool mayStep = false;       // the device runs the kernel `decode_step`, and nothing has shown that it cannot be had
  std::string forceVariant{}; // EngineOptions::forceVariant
};

// The two templates for attention kernels. An attention route is a threshold that chooses between kTiledTemplate and
// kSimpleTemplate. If a sequence has fewer keys than the threshold, the kernel is made from kSimpleTemplate, which uses
// no tensor cores. Otherwise the kernel is made from kTiledTemplate.
inline constexpr std::string_view kTiledTemplate = "attention", kSimpleTemplate = "row_attention";
// The embedded templates of operators with several templates, in ascending order.
inline constexpr std::string_view kVariants[] = {kTiledTemplate, "attention_sm90", kSimpleTemplate};

// Returns the name of an operator's attention route: "window.attention_from". The threshold of an attention route is a
// number of keys of a sequence: for this many keys and more, kTiledTemplate is faster than kSimpleTemplate. Only dense,
// window and cmp have an attention route.
std::string attentionRoute(Operator op);
// Returns whether the threshold of an attention route may be applied to a call with the given maxima. The threshold of
// an attention route is measured with calls that have one sequence and as many queries as keys. The threshold may be
// applied only to calls that use the same compiled kernels as the measured calls. Calls with few queries and many keys
// use different kernels, and so do some batches of short sequences.
bool isAsMeasured(const Spec &spec, const Maxima &maxima);

// The threshold of the route `sel.dense_up_to` is the greatest number of keys of a sequence up to which dense attention
// is faster than attention over the block list. The route `sel.dense_up_to` is used in calls of nsa whose sequences are
// so short that the selection contains all their blocks.
inline constexpr std::string_view kDenseRoute = "sel.dense_up_to";
// Returns whether dense attention is faster than attention over the block list in a call of nsa with the given maxima.
// The maxima must allow at most sel_count * sel_block keys in a sequence, because the selection does not contain all
// blocks of a longer sequence. One plan is used for all lengths of a bucket, so densePays compares the greatest length
// of the bucket with the threshold.
bool densePays(const StoredRoute &route, const Spec &spec, const Maxima &maxima);

// The gradient of the queries of `sel` is computed query by query by `sel_dq`, or block by block by `sel_dq_slots`. The
// threshold of the route `sel_bwd.slots_from` is a number of keys of a sequence: for this many keys and more,
// `sel_dq_slots` is faster, with the kernels that it needs. The route is used in `sel_bwd` and `nsa_bwd`.
inline constexpr std::string_view kSlotsRoute = "sel_bwd.slots_from", kSlotsVariant = "sel_dq_slots",
                                  kQueriesVariant = "sel_dq";
constexpr bool isWayOfDq(std::string_view name) { return name == kSlotsVariant || name == kQueriesVariant; }
// Returns whether `sel_dq_slots` is the faster way in a call with the given maxima. One plan is used for all lengths of
// a bucket, so the greatest length of the bucket is compared.
bool slotsPay(const StoredRoute &route, const Maxima &maxima);

// One kernel, `decode_step`, can do a whole step of decode, with up to stepTokens new tokens of each sequence. Returns
// whether it serves a plan. It serves no plan with batch_invariant, because its code depends on the sizes of the plan.
inline constexpr std::string_view kStepVariant = "decode_step", kStepTarget = "sm_90a";
inline bool stepServes(const Spec &spec, const Maxima &maxima) {
  return definitionOf(spec.op).hasCache && !spec.batchInvariant && maxima.seqlenQ <= stepTokens(spec);
}
// Returns whether force_variant names `decode_step`, and the kernel serves a plan. Where force_variant names
// anything else, such as a template, a plan has the other kernels of decode.
inline bool forcesStep(const Spec &spec, const Maxima &maxima, std::string_view forceVariant) {
  return forceVariant == kStepVariant && stepServes(spec, maxima);
}
// Returns whether force_variant names a way to compute a plan, and no template of one of its kernels.
constexpr bool isWay(std::string_view name) { return isWayOfDq(name) || name == kStepVariant; }

// In decode with few queries, several programs of a grid share the keys of a query. splitsRoute returns the name of the
// route that sets the number of these programs: "decode.splits batch=64 seqlen_k=65536 seqlen_q=1", with sizes rounded
// up to powers of two. splitsRoute returns "" if no two programs share the keys of a query. The threshold of a route
// from splitsRoute is the number of programs that share the keys of a query in each branch. A branch with few keys has
// fewer programs than the threshold says. The threshold kNever means that no measured number of programs was faster
// than the number that the rule of docs/operators.md gives. The threshold kTakesStep means that no number beat the
// kernel `decode_step` by its margin (docs/tuning.md). A library that does not know kTakesStep takes the most programs.
inline constexpr int64_t kTakesStep = KeySplits::kMost + 1;
// Returns whether the threshold was measured beside `decode_step`. Otherwise it says nothing of a plan that may have
// this kernel.
inline bool comparesStep(const StoredRoute &route) {
  return route.threshold == kTakesStep ||
         std::ranges::find(route.evidence, kTakesStep, &RouteMeasurement::size) != route.evidence.end();
}
inline constexpr std::string_view kSplitsRoute = "decode.splits";
std::string splitsRoute(const Spec &spec, const Maxima &maxima);
// Returns whether a threshold of splitsRoute is measured together with the kernels of this operator, which do most of
// the work in a step of decode.
bool hasSplitsRoute(Operator op);
// Returns a text that is the same for all problems to which one threshold of splitsRoute applies.
std::string splitsFamily(const Spec &spec);

// Returns a text that is the same for all problems to which one threshold applies, whatever their lengths are: "window
// dtype=bf16 group=16 ... kv_heads=4".
std::string routeFamily(const Spec &spec);

} // namespace nsa
