#include "tools/support/gradient_check.h"

#include "tools/reference/elements.h"
#include "tools/reference/gradient/attention_gradient.h"
#include "tools/reference/gradient/compression_gradient.h"
#include "tools/reference/gradient/nsa_gradient.h"
#include "tools/support/output_checker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

namespace nsa::tools {
namespace {

class GradientChecker : OutputChecker {
public:
  using OutputChecker::OutputChecker;

  OperatorCheck run() {
    const OperatorDef &def = definitionOf(spec.op);
    if (def.isAttentionGradient())
      checkAttention();
    else if (def.isWholeGradient())
      checkNsa();
    else if (def.fields & kPhi)
      checkCompression();
    else
      checkCombination();
    return std::move(result);
  }

private:
  void addGradient(T name, std::span<const Sequence> rows, int64_t heads, int64_t columns,
                   std::span<const double> expected, const reference::GradientRows &limits = {}) {
    if (!output(name))
      return;
    add(name, reference::gradientToleranceOf(spec.dtype),
        reference::compareRows(rows, heads, columns, expected, out(name), limits));
  }

  void checkAttention() {
    const bool isCompressed = definitionOf(spec.op).keys == MetKeys::kBlocks;
    const reference::Attention attention = attentionOf(compared);
    const reference::AttentionResult forward = reference::attend(attention);
    const std::vector<double> dOut = reference::readRows(compared, in(T::kDOut), spec.queryHeads, spec.vDim);
    const reference::AttentionGradient expected = rows.empty()
                                                      ? reference::differentiate(attention, forward, dOut)
                                                      : reference::differentiateQueries(attention, forward, dOut);
    addReached(boundGradient(View::kDQ), compared, spec.queryHeads, spec.qkDim, expected.q, attending(forward.lse),
               expected.qTerms);
    addGradient(T::kDelta, compared, spec.queryHeads, 1, expected.delta);
    std::vector<Sequence> keys =
        isCompressed ? reference::compressedRows(sequences, spec) : reference::keyRows(sequences);
    std::vector<reference::KeyGradient> gradients = expected.keys;
    if (!rows.empty())
      keys = sampledKeys(keys, gradients);
    const Flat flat = flattened(gradients);
    addKeyGradient(boundGradient(View::kDK), keys, spec.qkDim, flat.k, flat.attended, flat.kTerms);
    addKeyGradient(boundGradient(View::kDV), keys, spec.vDim, flat.v, flat.attended);
  }
  using Flat = reference::KeyGradient; // of all sequences
  static Flat flattened(const std::vector<reference::KeyGradient> &gradients) {
    Flat flat;
    for (const reference::KeyGradient &own : gradients) {
      flat.kTerms.insert(flat.kTerms.end(), own.kTerms.begin(), own.kTerms.end());
      flat.k.insert(flat.k.end(), own.k.begin(), own.k.end());
      flat.v.insert(flat.v.end(), own.v.begin(), own.v.end());
      flat.attended.insert(flat.attended.end(), own.attended.begin(), own.attended.end());
    }
    return flat;
  }
  // Where single rows are compared, the gradients of single keys of the first sequence that has keys, from the first
  // one to the last one. They take what the forward pass saved.
  std::vector<Sequence> sampledKeys(const std::vector<Sequence> &keys,
                                    std::vector<reference::KeyGradient> &gradients) const {
    gradients.clear();
    const Samples samples = samplesOf(keys);
    if (samples.keys.empty())
      return {};
    const reference::Attention attention = attentionOf(sequences);
    const std::vector<double> dOut = reference::readRows(sequences, in(T::kDOut), spec.queryHeads, spec.vDim);
    const std::vector<double> out = reference::readRows(sequences, in(T::kOut), spec.queryHeads, spec.vDim);
    reference::SavedRows saved{.lse = reference::readRows(sequences, in(T::kLse), spec.queryHeads, 1), .delta = {}};
    for (size_t row = 0; row < saved.lse.size(); ++row)
      saved.delta.push_back(reference::dot(&out[row * spec.vDim], &dOut[row * spec.vDim], spec.vDim));
    for (const int64_t key : samples.keys)
      gradients.push_back(reference::differentiateKey(attention, sequences[samples.sequence], key, saved, dOut));
    return samples.places;
  }
  // A few keys of the first sequence that has keys, and their rows in tensors of keys.
  struct Samples {
    size_t sequence = 0;
    std::vector<int64_t> keys{};
    std::vector<Sequence> places{};
  };
  static Samples samplesOf(const std::vector<Sequence> &keys) {
    constexpr int64_t kMostSamples = 5;
    const auto first = std::ranges::find_if(keys, [](const Sequence &sequence) { return sequence.queries > 0; });
    if (first == keys.end())
      return {};
    Samples samples{.sequence = static_cast<size_t>(first - keys.begin())};
    const int64_t count = std::min(kMostSamples, first->queries);
    for (int64_t i = 0; i < count; ++i) {
      samples.keys.push_back(count == 1 ? 0 : i * (first->queries - 1) / (count - 1));
      samples.places.push_back(
          {.batch = first->batch, .queryBegin = first->queryBegin + samples.keys.back(), .queries = 1});
    }
    samples.places = reference::renumberRows(std::move(samples.places));
    return samples;
  }
  T boundGradient(T name) const { return outputName(*definitionOf(spec.op).operandOf(name), inputs.tensors); }
  T boundGradient(View view) const { return outputName(*definitionOf(spec.op).operandOf(view), inputs.tensors); }
  // Rows that are not reached, of `heads` each, must be 0 to the bit, unless the reference has NaN there.
  void addReached(T name, std::span<const Sequence> places, int64_t heads, int64_t columns,
                  std::span<const double> expected, const std::vector<bool> &reached,
                  std::span<const double> terms = {}) {
    if (!output(name))
      return;
    addGradient(name, places, heads, columns, expected, {.terms = terms});
    OutputCheck &check = result.outputs.back();
    std::vector<double> row(static_cast<size_t>(columns));
    for (const Sequence &sequence : places)
      for (int64_t time = 0; time < sequence.queries; ++time)
        for (int64_t head = 0; head < heads; ++head) {
          const int64_t place = (sequence.firstRow + time) * heads + head;
          const auto own = expected.subspan(static_cast<size_t>(place * columns), static_cast<size_t>(columns));
          if (reached[static_cast<size_t>(place)] || std::ranges::any_of(own, [](double x) { return std::isnan(x); }))
            continue;
          out(name).read(sequence.batch, sequence.queryBegin + time, head, row);
          if (!std::ranges::all_of(row, reference::isZero)) {
            check.within = check.isRightElsewhere = false;
            check.text += ", row " + std::to_string(sequence.firstRow + time) + " that nothing depends on is not 0";
          }
        }
  }
  void addKeyGradient(T name, std::span<const Sequence> keys, int64_t columns, std::span<const double> expected,
                      const std::vector<bool> &attended, std::span<const double> terms = {}) {
    addReached(name, keys, spec.kvHeads, columns, expected, attended, terms);
  }
  // The rows of queries that attend a key.
  static std::vector<bool> attending(std::span<const double> lse) {
    std::vector<bool> result;
    for (const double own : lse)
      result.push_back(own != -std::numeric_limits<double>::infinity());
    return result;
  }

  void checkCombination() {
    const CombinedBranches combined = combinedBranches();
    const reference::CombinationGradient expected = reference::differentiate(
        combined.combination, reference::readRows(compared, in(T::kDOut), spec.queryHeads, spec.vDim));
    addGradient(T::kDGates, compared, spec.gatePerGroup ? spec.kvHeads : spec.queryHeads, reference::kBranchCount,
                expected.gates);
    constexpr T kGradients[] = {T::kDOCmp, T::kDOSel, T::kDOWin};
    for (size_t i = 0; i < reference::kBranchCount; ++i)
      if (spec.hasBranch(1 << i))
        addGradient(kGradients[i], compared, spec.queryHeads, spec.vDim, expected.branches[i]);
  }

  void checkCompression() {
    const reference::Nsa nsa = referenceNsa(inputs);
    const reference::CompressionGradient expected = reference::differentiate(
        {spec, nsa.kCmp, nsa.vCmp, nsa.phiK, nsa.phiV, sequences}, in(T::kDKComp), in(T::kDVComp));
    const std::vector<Sequence> keys = reference::keyRows(sequences);
    addKeyGradient(boundGradient(View::kDK), keys, spec.qkDim, expected.k.tokens, expected.k.covered);
    addKeyGradient(boundGradient(View::kDV), keys, spec.vDim, expected.v.tokens, expected.v.covered);
    checkWeights(expected);
  }
  // A constant in all compressed keys changes no weight of the softmax. So the gradient of what adds one, phi's last
  // bias of keys and the embeddings of the kind linear, is 0 but for rounding where the gradients of keys come from
  // attention: `keyTerms` is the sum of the squared norms of what is added up.
  void checkWeights(const reference::CompressionGradient &expected, std::optional<double> keyTerms = {}) {
    const auto constant = [&](int64_t rows, double factor) {
      return std::vector(static_cast<size_t>(keyTerms ? rows : 0), factor * keyTerms.value_or(0));
    };
    const std::vector<double> biasTerms = constant(1, 1);
    // An embedding goes through a matrix whose elements have the mean square 1 / (cmp_block * qk_dim).
    const std::vector<double> embeddingTerms =
        spec.cmpKind == CmpKind::kLinear ? constant(spec.cmpBlock, 1.0 / spec.cmpBlock) : std::vector<double>();
    for (const bool ofKeys : {true, false}) {
      const reference::PhiGradient &phi = (ofKeys ? expected.k : expected.v).phi;
      const int64_t dim = ofKeys ? spec.qkDim : spec.vDim, hidden = spec.mlpHidden;
      const std::span<const double> none, last = ofKeys ? biasTerms : none;
      // The other weights of keys have such terms too, and more that do not cancel. A fiftieth of the terms counts.
      const auto few = [&](int64_t rows) {
        return ofKeys ? constant(rows, 0.02 * 0.02 / static_cast<double>(rows)) : std::vector<double>();
      };
      addWeights(ofKeys ? T::kDPeK : T::kDPeV, spec.cmpBlock, 1, dim, phi.pe,
                 ofKeys && spec.cmpKind == CmpKind::kLinear ? embeddingTerms : few(spec.cmpBlock));
      addWeights(ofKeys ? T::kDWK : T::kDWV, spec.cmpBlock, dim, dim, phi.w, few(spec.cmpBlock * dim));
      addWeights(ofKeys ? T::kDBK : T::kDBV, 1, 1, dim, phi.b, last);
      addWeights(ofKeys ? T::kDW1K : T::kDW1V, spec.cmpBlock, dim, hidden, phi.w, few(spec.cmpBlock * dim));
      addWeights(ofKeys ? T::kDB1K : T::kDB1V, 1, 1, hidden, phi.b, few(1));
      addWeights(ofKeys ? T::kDW2K : T::kDW2V, hidden, 1, dim, phi.w2, few(hidden));
      addWeights(ofKeys ? T::kDB2K : T::kDB2V, 1, 1, dim, phi.b2, last);
    }
  }
  // The terms of a token are the terms of the compressed keys that cover it. The mean has a share of each; a matrix has
  // elements with the mean square 1 / (cmp_block * qk_dim).
  std::vector<double> tokenTerms(const std::vector<reference::KeyGradient> &blocks) const {
    const double share = spec.cmpKind == CmpKind::kMean ? 1.0 / spec.cmpBlock / spec.cmpBlock : 1.0 / spec.cmpBlock;
    std::vector<double> terms;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto first = static_cast<int64_t>(terms.size());
      const int64_t tokens = reference::keyRows(sequences)[i].queries;
      terms.resize(terms.size() + static_cast<size_t>(tokens * spec.kvHeads));
      for (int64_t block = 0; block < spec.compressedBlocks(tokens); ++block)
        for (int64_t at = 0; at < int64_t{spec.cmpBlock} * spec.kvHeads; ++at)
          terms[static_cast<size_t>(first + block * spec.cmpStride * spec.kvHeads + at)] +=
              share * blocks[i].kTerms[static_cast<size_t>(block * spec.kvHeads + at % spec.kvHeads)];
    }
    return terms;
  }
  // A matrix for each of `times` tokens.
  void addWeights(T name, int64_t times, int64_t rows, int64_t columns, std::span<const double> expected,
                  std::span<const double> terms = {}) {
    const Sequence places[] = {{.queries = times}};
    addGradient(name, places, rows, columns, expected, {.terms = terms, .shareOfTerms = 1});
  }

  static double termsOf(const std::vector<reference::KeyGradient> &keys) {
    double sum = 0;
    for (const reference::KeyGradient &own : keys)
      sum = std::reduce(own.kTerms.begin(), own.kTerms.end(), sum);
    return sum;
  }

  // A gradient of all branches that read the tensor.
  struct Sum {
    std::vector<double> values{}, terms{};
    std::vector<bool> reached{}; // keys that a query attends, or queries that attend a key; other rows are exactly 0

    template <typename Value> static void add(std::vector<Value> &sum, const std::vector<Value> &more) {
      sum.resize(std::max(sum.size(), more.size()));
      for (size_t i = 0; i < more.size(); ++i)
        sum[i] = sum[i] + more[i];
    }
    void reach(const std::vector<bool> &more) {
      reached.resize(std::max(reached.size(), more.size()));
      for (size_t row = 0; row < more.size(); ++row)
        if (more[row])
          reached[row] = true;
    }
  };

  // What the reference says of all queries and keys, or of single ones.
  struct NsaRows {
    std::vector<double> gates;
    std::array<reference::AttentionGradient, reference::kBranchCount> queries; // without keys
    std::array<std::vector<bool>, reference::kBranchCount> attending;          // queries that attend a key
    std::array<Flat, reference::kBranchCount> keys;                            // cmp: through compression
    std::vector<Sequence> places;                                              // of the keys
  };

  static std::array<std::vector<bool>, reference::kBranchCount> attending(const reference::NsaResult &forward) {
    std::array<std::vector<bool>, reference::kBranchCount> result;
    for (size_t i = 0; i < reference::kBranchCount; ++i)
      result[i] = attending(forward.branches[i].lse);
    return result;
  }

  NsaRows wholeNsa(const reference::Nsa &nsa) {
    const reference::NsaResult forward = reference::forward(nsa);
    reference::NsaGradient expected = reference::differentiate(
        nsa, forward, reference::readRows(sequences, in(T::kDOut), spec.queryHeads, spec.vDim));
    if (spec.hasBranch(kBranchCmp))
      checkWeights(expected.compression, termsOf(expected.branches[0].keys));
    NsaRows result{
        .gates = std::move(expected.gates), .queries = {}, .attending = attending(forward), .keys = {}, .places = {}};
    result.keys[0] = {.k = std::move(expected.compression.k.tokens),
                      .v = std::move(expected.compression.v.tokens),
                      .attended = std::move(expected.compression.k.covered),
                      .kTerms =
                          spec.hasBranch(kBranchCmp) ? tokenTerms(expected.branches[0].keys) : std::vector<double>()};
    for (const size_t i : {1, 2})
      result.keys[i] = flattened(expected.branches[i].keys);
    result.queries = std::move(expected.branches);
    result.places = reference::keyRows(sequences);
    return result;
  }

  NsaRows sampledNsa(reference::Nsa nsa) const {
    nsa.rows = rows;
    const reference::NsaResult forward = reference::forward(nsa);
    reference::NsaGradient expected = reference::differentiateQueries(
        nsa, forward, reference::readRows(compared, in(T::kDOut), spec.queryHeads, spec.vDim));
    NsaRows result{.gates = std::move(expected.gates),
                   .queries = std::move(expected.branches),
                   .attending = attending(forward),
                   .keys = {},
                   .places = {}};
    const Samples samples = samplesOf(reference::keyRows(sequences));
    result.places = samples.places;
    if (!samples.keys.empty())
      result.keys = reference::differentiateTokens(
          nsa, savedNsa(nsa), reference::readRows(sequences, in(T::kDOut), spec.queryHeads, spec.vDim),
          sequences[samples.sequence], samples.keys);
    return result;
  }
  // What the forward pass saved, of all rows.
  reference::NsaResult savedNsa(const reference::Nsa &nsa) const {
    constexpr T kOuts[] = {T::kOCmp, T::kOSel, T::kOWin}, kLses[] = {T::kLseCmp, T::kLseSel, T::kLseWin};
    reference::NsaResult saved{
        .sequences = sequences, .compressed = {}, .blockLists = {}, .branches = {}, .out = {}, .reads = {}};
    for (size_t i = 0; i < reference::kBranchCount; ++i)
      if (spec.hasBranch(1 << i)) {
        saved.branches[i].out = reference::readRows(sequences, in(kOuts[i]), spec.queryHeads, spec.vDim);
        saved.branches[i].lse = reference::readRows(sequences, in(kLses[i]), spec.queryHeads, 1);
      }
    if (spec.hasBranch(kBranchSel))
      saved.blockLists = reference::readBlockLists(sequences, nsa.blockLists, spec.kvHeads, spec.selCount);
    return saved;
  }

  // The other gradients are of tensors that no branch reads. Of single rows the gradients of weights are not checked.
  void checkZeros() {
    for (const Operand &operand : operandsOf(spec.op)) {
      const HostTensor *tensor = operand.isWritten() ? output(operand.name) : nullptr;
      const bool isOfWeight = tensorRule(operand.name).lead == Lead::kNone && takes(spec, operand.name);
      if (!tensor || isOfWeight ||
          std::ranges::count(result.outputs, tensorName(operand.name), &OutputCheck::name) != 0)
        continue;
      int64_t others = 0;
      for (int64_t i = 0; i < tensor->elements(); ++i)
        others += !reference::isZero(reference::loadElement(tensor->dtype, tensor->bytes.data(), i));
      add(operand.name, reference::gradientToleranceOf(spec.dtype), {});
      OutputCheck &check = result.outputs.back();
      check.within = check.isRightElsewhere = others == 0;
      check.text = std::to_string(others) + " elements that nothing depends on are not 0";
    }
  }

  void checkNsa() {
    reference::Nsa nsa = referenceNsa(inputs);
    nsa.kComp = inputView(inputs, T::kKComp, T::kKComp);
    nsa.vComp = inputView(inputs, T::kVComp, T::kVComp);
    if (spec.hasBranch(kBranchSel))
      nsa.blockLists = listView(spec, inputs[T::kBlockList]);
    const NsaRows expected = rows.empty() ? wholeNsa(nsa) : sampledNsa(nsa);
    addGradient(T::kDGates, compared, spec.gatePerGroup ? spec.kvHeads : spec.queryHeads, reference::kBranchCount,
                expected.gates);
    std::map<T, Sum> queries, keys;
    constexpr T kQueries[] = {T::kDQCmp, T::kDQ, T::kDQ};
    constexpr T kKeys[] = {T::kDKCmp, T::kDKSel, T::kDKWin}, kValues[] = {T::kDVCmp, T::kDVSel, T::kDVWin};
    for (size_t i = 0; i < reference::kBranchCount; ++i) {
      if (!spec.hasBranch(1 << i))
        continue;
      Sum &q = queries[boundGradient(kQueries[i])];
      Sum::add(q.values, expected.queries[i].q);
      Sum::add(q.terms, expected.queries[i].qTerms);
      q.reach(expected.attending[i]);
      const Flat &own = expected.keys[i];
      Sum &k = keys[boundGradient(kKeys[i])], &v = keys[boundGradient(kValues[i])];
      Sum::add(k.values, own.k);
      Sum::add(k.terms, own.kTerms);
      Sum::add(v.values, own.v);
      for (Sum *sum : {&k, &v})
        sum->reach(own.attended);
    }
    for (const auto &[name, sum] : queries)
      addReached(name, compared, spec.queryHeads, spec.qkDim, sum.values, sum.reached, sum.terms);
    for (const auto &[name, sum] : keys)
      addKeyGradient(name, expected.places,
                     static_cast<int64_t>(sum.values.size() / std::max<size_t>(sum.reached.size(), 1)), sum.values,
                     sum.reached, sum.terms);
    checkZeros();
  }
};

} // namespace

OperatorCheck checkGradient(const OperatorInputs &inputs, const NamedTensors &outputs,
                            const std::vector<int64_t> &rows) {
  return GradientChecker(inputs, outputs, rows).run();
}

} // namespace nsa::tools
