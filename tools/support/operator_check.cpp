#include "tools/support/operator_check.h"

#include "runtime/base/signature.h"
#include "tools/reference/rotation.h"
#include "tools/support/gradient_check.h"
#include "tools/support/kv_cache.h"
#include "tools/support/output_checker.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace nsa::tools {
namespace {

using reference::AttentionResult;
using reference::BlockListView;
using reference::Sequence;
using reference::TensorView;
using T = TensorName;

// All of one operator's checks. Members are what they share.
class Checker : OutputChecker {
public:
  using OutputChecker::OutputChecker;

  OperatorCheck run();
  OperatorCheck runSaved() {
    if (definitionOf(spec.op).isWholeGradient())
      checkForward();
    else
      checkAttention();
    return std::move(result);
  }

private:
  void addReads(T name, const std::vector<int64_t> &expected) {
    const HostTensor *tensor = output(name);
    if (!tensor)
      return;
    OutputCheck check{.name = std::string(tensorName(name)), .within = true, .text = "all counts equal"};
    const std::span<const int32_t> values = tensor->integers();
    const bool packed = spec.layout == Layout::kPacked;
    for (const Sequence &sequence : compared)
      for (int64_t query = 0; query < sequence.queries; ++query)
        for (int64_t head = 0; head < spec.kvHeads && check.within; ++head) {
          const int64_t time = (packed ? 0 : sequence.batch * inputs.extents.timeQ) + sequence.queryBegin + query;
          const int64_t actual = values[static_cast<size_t>(time * spec.kvHeads + head)];
          const int64_t wanted = expected[static_cast<size_t>((sequence.firstRow + query) * spec.kvHeads + head)];
          check.within = actual == wanted;
          if (!check.within)
            check.text = "time " + std::to_string(time) + ", group " + std::to_string(head) + ": " +
                         std::to_string(actual) + " must be " + std::to_string(wanted);
        }
    result.outputs.push_back(std::move(check));
  }

  void addLists(const reference::ListReport &report) {
    result.outputs.push_back({"block_list", report.isRight(), report.toString(), {}, report});
  }

  void checkAttention() {
    const AttentionResult expected = reference::attend(attentionOf(compared));
    addRows(T::kOut, compared, spec.queryHeads, spec.vDim, expected.out, T::kLse, expected.lse);
    addReads(T::kReads, expected.reads);
  }

  void checkCompressed(const reference::Compressed &expected) {
    const std::vector<Sequence> rows = reference::compressedRows(sequences, spec);
    const TensorView k = expected.k.view(), v = expected.v.view();
    addRows(T::kKComp, rows, spec.kvHeads, spec.qkDim, reference::readRows(rows, k, spec.kvHeads, spec.qkDim));
    addRows(T::kVComp, rows, spec.kvHeads, spec.vDim, reference::readRows(rows, v, spec.kvHeads, spec.vDim));
  }

  void checkCompression() {
    const reference::Nsa nsa = referenceNsa(inputs);
    checkCompressed(reference::compress({spec, nsa.kCmp, nsa.vCmp, nsa.phiK, nsa.phiV, sequences}));
  }

  void checkLists(const TensorView &q, const TensorView &kComp) {
    const HostTensor *lists = output(T::kBlockList);
    if (!lists)
      return;
    addLists(
        reference::checkLists({spec, q, kComp, compared}, reference::readBlockLists(compared, listView(spec, *lists),
                                                                                    spec.kvHeads, spec.selCount)));
    checkIndex(*lists);
  }

  // The inverse of the lists, of whole sequences also where single rows are compared.
  void checkIndex(const HostTensor &lists) {
    const HostTensor *index = output(T::kBlockIndex);
    if (!index)
      return;
    OutputCheck check{.name = "block_index", .within = true, .text = "all queries equal"};
    const reference::BlockLists read =
        reference::readBlockLists(sequences, listView(spec, lists), spec.kvHeads, spec.selCount);
    const int64_t places = index->shape.back();
    for (size_t i = 0; i < sequences.size(); ++i)
      for (int64_t head = 0; head < spec.kvHeads && sequences[i].keys > 0; ++head) {
        const Sequence &sequence = sequences[i];
        const bool packed = spec.layout == Layout::kPacked;
        const int64_t begin = packed ? sequence.keyBegin / spec.selBlock + 2 * static_cast<int64_t>(i) +
                                           sequence.queryBegin * spec.selCount
                                     : 0;
        const int64_t part = ((packed ? 0 : sequence.batch * spec.kvHeads) + head) * places + begin;
        const std::vector<std::vector<int32_t>> queries = reference::invertLists(read, sequence, head, spec.selBlock);
        std::vector<int32_t> expected = {0};
        for (const std::vector<int32_t> &block : queries)
          expected.push_back(expected.back() + static_cast<int32_t>(block.size()));
        for (const std::vector<int32_t> &block : queries)
          expected.insert(expected.end(), block.begin(), block.end());
        const std::span<const int32_t> actual = index->integers().subspan(static_cast<size_t>(part), expected.size());
        const auto [wrong, wanted] = std::ranges::mismatch(actual, expected);
        if (wrong == actual.end() || !check.within)
          continue;
        check.within = false;
        check.text = "sequence " + std::to_string(i) + ", head " + std::to_string(head) + ", place " +
                     std::to_string(wrong - actual.begin()) + " of " + std::to_string(expected.size()) + ": " +
                     std::to_string(*wrong) + " must be " + std::to_string(*wanted);
      }
    result.outputs.push_back(std::move(check));
  }
  void checkIndex() { checkIndex(inputs[T::kBlockList]); }

  void checkSelection() { checkLists(in(View::kQ), in(View::kK)); }

  void checkRotation() {
    addRows(T::kOut, compared, spec.kvHeads, spec.qkDim,
            reference::rotate({spec, in(T::kX), in(T::kCos), in(T::kSin), compared}));
  }

  void checkCombination() {
    const CombinedBranches combined = combinedBranches();
    addRows(T::kOut, compared, spec.queryHeads, spec.vDim, reference::combine(combined.combination));
  }

  void checkForward() {
    reference::Nsa nsa = referenceNsa(inputs);
    const bool compresses = spec.hasBranch(kBranchCmp) || spec.hasBranch(kBranchSel);
    if (compresses && output(T::kKComp) && output(T::kVComp)) {
      checkCompressed(reference::compress({spec, nsa.kCmp, nsa.vCmp, nsa.phiK, nsa.phiV, sequences}));
      nsa.kComp = out(T::kKComp);
      nsa.vComp = out(T::kVComp);
    }
    checkBranches(nsa);
  }

  // The cache itself, then the new queries over it as it stands now.
  void checkDecode() {
    result.outputs = checkCache(inputs, outputs);
    reference::Nsa nsa = referenceNsa(inputs);
    auto pool = [&](T name, T otherwise) {
      return cacheView(spec, output(name) ? name : otherwise, outputs, inputs.find(T::kBlockTable, T::kBlockTable));
    };
    nsa.kSel = pool(T::kKSelCache, T::kKCache);
    nsa.vSel = pool(T::kVSelCache, T::kVCache);
    nsa.kWin = pool(T::kKWinCache, T::kKCache);
    nsa.vWin = pool(T::kVWinCache, T::kVCache);
    nsa.kComp = pool(T::kKCompCache, T::kKCompCache);
    nsa.vComp = pool(T::kVCompCache, T::kVCompCache);
    checkBranches(nsa);
  }

  // From queries and compressed rows on. The lists of a gradient are the caller's choice.
  void checkBranches(reference::Nsa &nsa) {
    if (spec.hasBranch(kBranchSel) && output(T::kBlockList)) {
      reference::Compressed own;
      const bool isChosen = definitionOf(spec.op).isGradient();
      if (!nsa.kComp.isGiven() && !isChosen)
        own = reference::compress({spec, nsa.kCmp, nsa.vCmp, nsa.phiK, nsa.phiV, sequences});
      if (!isChosen)
        checkLists(nsa.qCmp.isGiven() ? nsa.qCmp : nsa.q, nsa.kComp.isGiven() ? nsa.kComp : own.k.view());
      nsa.blockLists = listView(spec, outputs.at(T::kBlockList));
    }
    nsa.rows = rows;
    const reference::NsaResult expected = reference::forward(nsa);
    const T parts[] = {T::kOCmp, T::kOSel, T::kOWin};
    const T lses[] = {T::kLseCmp, T::kLseSel, T::kLseWin};
    for (size_t i = 0; i < reference::kBranchCount; ++i)
      if (spec.hasBranch(1 << i))
        addRows(parts[i], compared, spec.queryHeads, spec.vDim, expected.branches[i].out, lses[i],
                expected.branches[i].lse);
    addRows(T::kOut, compared, spec.queryHeads, spec.vDim, expected.out);
    addReads(T::kReads, expected.reads);
  }
};

OperatorCheck Checker::run() {
  // The check of each public operator.
  constexpr std::pair<Operator, void (Checker::*)()> kChecks[] = {
      {Operator::kDense, &Checker::checkAttention},      {Operator::kWindow, &Checker::checkAttention},
      {Operator::kCompress, &Checker::checkCompression}, {Operator::kCmp, &Checker::checkAttention},
      {Operator::kSelect, &Checker::checkSelection},     {Operator::kSel, &Checker::checkAttention},
      {Operator::kCombine, &Checker::checkCombination},  {Operator::kNsa, &Checker::checkForward},
      {Operator::kDecode, &Checker::checkDecode},        {Operator::kRotate, &Checker::checkRotation},
      {Operator::kRotateBwd, &Checker::checkRotation},   {Operator::kInvert, &Checker::checkIndex},
  };
  const auto *check = std::ranges::find(kChecks, spec.op, &std::pair<Operator, void (Checker::*)()>::first);
  assert(check != std::end(kChecks) && "has no tensors of its own");
  (this->*check->second)();
  return std::move(result);
}

} // namespace

bool OperatorCheck::within() const {
  return !outputs.empty() && std::all_of(outputs.begin(), outputs.end(), [](const OutputCheck &c) { return c.within; });
}

bool OperatorCheck::isUnjudged() const {
  return !within() &&
         std::ranges::all_of(outputs, [](const OutputCheck &check) { return check.within || check.isRightElsewhere; });
}

std::string OperatorCheck::toString() const {
  std::string text;
  for (const OutputCheck &check : outputs)
    text += check.name + ": " + (check.within ? "" : "NOT within the contract: ") + check.text + "\n";
  return text;
}

TensorView viewOf(const Spec &spec, TensorName name, const HostTensor &tensor) {
  const TensorRule &rule = tensorRule(name);
  TensorView view;
  view.data = tensor.bytes.data();
  view.dtype = tensor.dtype;
  const std::vector<int64_t> &shape = tensor.shape;
  if (rule.lead == Lead::kNone) {
    // (0, i, row, column): a matrix per token of the block, one matrix, or one row.
    const Axis first = rule.axes[0];
    const bool split = first == Axis::kBlockQk || first == Axis::kBlockV;
    view.headStride = split ? shape.back() : rule.axisCount == 3 ? shape.back() : 0;
    view.timeStride = split                 ? (first == Axis::kBlockQk ? spec.qkDim : spec.vDim) * shape.back()
                      : rule.axisCount == 3 ? shape[1] * shape[2]
                      : rule.axisCount == 2 ? shape.back()
                                            : 0;
    return view;
  }
  if (rule.lead == Lead::kPositions) {
    view.timeStride = shape.back();
    return view;
  }
  const size_t heads = spec.layout == Layout::kPacked && !isUpdated(name) ? 1 : 2;
  view.headStride = rule.axisCount == 2 ? shape.back() : 1;
  view.timeStride = shape[heads] * view.headStride;
  view.batchStride = heads == 2 ? shape[1] * view.timeStride : 0;
  return view;
}

BlockListView listView(const Spec &spec, const HostTensor &tensor) {
  const int64_t time = int64_t{spec.kvHeads} * spec.selCount;
  const bool packed = spec.layout == Layout::kPacked;
  return {tensor.integers().data(), packed ? 0 : tensor.shape[1] * time, time, spec.selCount, 1};
}

std::vector<Sequence> sequencesOf(const OperatorInputs &inputs) {
  if (definitionOf(inputs.spec.op).hasCache)
    return sequencesInCache(inputs);
  const bool isDense = inputs.spec.layout == Layout::kDense;
  if (!isDense && !readsLengths(inputs.spec.op))
    return reference::denseSequences(1, inputs.extents.timeQ, inputs.extents.timeQ);
  std::vector<Sequence> sequences =
      isDense ? reference::denseSequences(inputs.extents.batch, inputs.extents.timeQ, inputs.extents.timeK)
              : reference::packedSequences(inputs[T::kCuSeqlensQ].integers(), inputs[T::kCuSeqlensK].integers(),
                                           inputs.spec);
  if (const HostTensor *offsets = inputs.find(T::kKOffset, T::kKOffset))
    for (size_t i = 0; i < sequences.size(); ++i)
      sequences[i].keyOffset = offsets->integers()[i];
  return sequences;
}

reference::Nsa referenceNsa(const OperatorInputs &inputs) {
  auto view = [&](T name, T otherwise) { return inputView(inputs, name, otherwise); };
  auto own = [&](T name) { return view(name, name); };
  reference::Nsa nsa;
  nsa.spec = inputs.spec;
  nsa.q = own(T::kQ);
  nsa.qCmp = own(T::kQCmp);
  nsa.kCmp = view(T::kKCmp, T::kK);
  nsa.vCmp = view(T::kVCmp, T::kV);
  nsa.kSel = view(T::kKSel, T::kK);
  nsa.vSel = view(T::kVSel, T::kV);
  nsa.kWin = view(T::kKWin, T::kK);
  nsa.vWin = view(T::kVWin, T::kV);
  nsa.gates = own(T::kGates);
  nsa.phiK = {own(T::kPeK), own(T::kWK), own(T::kBK), own(T::kW1K), own(T::kB1K), own(T::kW2K), own(T::kB2K)};
  nsa.phiV = {own(T::kPeV), own(T::kWV), own(T::kBV), own(T::kW1V), own(T::kB1V), own(T::kW2V), own(T::kB2V)};
  nsa.sequences = sequencesOf(inputs);
  return nsa;
}

OperatorCheck checkOperator(const OperatorInputs &inputs, const NamedTensors &outputs,
                            const std::vector<int64_t> &rows) {
  const OperatorDef &def = definitionOf(inputs.spec.op);
  const bool isRotation = (def.fields & kRotary) != 0; // whose gradient is a rotation
  return !def.isGradient() || isRotation ? Checker(inputs, outputs, rows).run() : checkGradient(inputs, outputs, rows);
}

OperatorCheck checkSaved(const OperatorInputs &inputs) {
  assert(definitionOf(inputs.spec.op).isAttentionGradient() || definitionOf(inputs.spec.op).isWholeGradient());
  return Checker(inputs, inputs.tensors, {}).runSaved();
}

} // namespace nsa::tools
