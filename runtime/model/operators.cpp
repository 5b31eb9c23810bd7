#include "runtime/model/operators.h"

#include "runtime/model/operands.h"

#include <algorithm>
#include <iterator>

namespace nsa {

namespace {

using namespace operands;

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
    {.op = Operator::kCompressBwd,
     .name = "compress_bwd",
     .abi = 16,
     .fields = kQk | kV | kCmpGeometry | kPhi,
     .constants = kLayoutConstant,
     .lengths = Lengths::kKeys,
     .tuning = kNone,
     .isWhole = true,
     .gradientOf = Operator::kCompress,
     .operands = kCompressBwdOperands},
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
    {.op = Operator::kCompressDz,
     .name = "compress_dz",
     .fields = kQk | kV | kCmpGeometry | kPhi,
     .constants = kLayoutConstant,
     .lengths = Lengths::kKeys,
     .tuning = kNone,
     .planViews = kCompressDzViews},
    {.op = Operator::kCompressDx,
     .name = "compress_dx",
     .fields = kQk | kV | kCmpGeometry | kPhi,
     .constants = kLayoutConstant,
     .lengths = Lengths::kKeys,
     .tuning = kNone,
     .planViews = kCompressDxViews},
    {.op = Operator::kCompressDw,
     .name = "compress_dw",
     .fields = kQk | kV | kCmpGeometry | kPhi,
     .constants = kLayoutConstant,
     .lengths = Lengths::kKeys,
     .tuning = kNone,
     .planViews = kCompressDwViews},
    {.op = Operator::kCompressDb,
     .name = "compress_db",
     .fields = kQk | kV | kCmpGeometry | kPhi,
     .constants = kLayoutConstant,
     .lengths = Lengths::kKeys,
     .tuning = kNone,
     .planViews = kCompressDbViews},
    {.op = Operator::kCompressSums,
     .name = "compress_sums",
     .fields = kQk | kV | kCmpGeometry | kPhi,
     .constants = kLayoutConstant,
     .lengths = Lengths::kKeys,
     .tuning = kNone,
     .planViews = kCompressSumsViews},
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

bool OperatorDef::sumsOverTokens() const {
  return std::ranges::any_of(operands, [](const Operand &operand) {
    return operand.isWritten() && tensorRule(operand.name).lead == Lead::kNone;
  });
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
