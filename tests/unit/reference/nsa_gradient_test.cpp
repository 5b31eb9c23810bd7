// The gradient of the whole forward pass in the reference against differences of the forward pass, on its own lists.
#include "tools/reference/gradient/nsa_gradient.h"

#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"

#include <cmath>
#include <numeric>

namespace nsa::reference {
namespace {

struct Problem {
  explicit Problem(std::mt19937_64 &random) {
    Spec spec = drawSpec(random);
    spec.op = Operator::kNsa;
    spec.dtype = DType::kF32;
    drawn = drawNsa(random, spec, drawLengths(random, spec, 40));
    lists = forward(drawn.nsa(), 1).blockLists;
    std::normal_distribution<double> normal;
    dOut.resize(forward(nsa(), 1).out.size());
    for (double &each : dOut)
      each = normal(random);
  }

  Nsa nsa() const {
    Nsa all = drawn.nsa();
    if (all.spec.hasBranch(kBranchSel))
      all.blockLists = listView(lists, drawn.lengths);
    return all;
  }
  // The sum of which the gradients are taken.
  double loss() const {
    const std::vector<double> out = forward(nsa(), 1).out;
    return std::inner_product(out.begin(), out.end(), dOut.begin(), 0.0);
  }

  DrawnNsa drawn;
  BlockLists lists;
  std::vector<double> dOut;
};

// Compares the slope of the loss along one element with its gradient. Where a relu turns within the step, the slopes of
// both sides differ, their mean is wrong by up to half of the difference, and there is nothing to compare.
void expectSlope(const Problem &problem, OwnedTensor &tensor, std::array<int64_t, 4> at, double gradient,
                 const char *name, int &compared) {
  constexpr double kStep = 1.0 / 128; // compressed rows are rounded to fp32
  const auto [batch, time, head, column] = at;
  const auto value = [&] { return tensor.view().at(batch, time, head, column); };
  const double before = value(), loss = problem.loss();
  double slopes[2];
  for (const int i : {0, 1}) {
    setElement(tensor, batch, time, head, column, before + (i ? kStep : -kStep));
    slopes[i] = (problem.loss() - loss) / (value() - before);
  }
  setElement(tensor, batch, time, head, column, before);
  const double limit = 5e-3 * (1 + std::abs(gradient));
  if (std::abs(slopes[1] - slopes[0]) > 2 * limit)
    return;
  ++compared;
  EXPECT_NEAR((slopes[0] + slopes[1]) / 2, gradient, limit) << name;
}

TEST(NsaGradient, IsTheSlopeOfTheForwardPass) {
  std::mt19937_64 random(test::freshSeed());
  int compared = 0, ofPhi = 0;
  for (int round = 0; round < 60; ++round) {
    Problem problem(random);
    DrawnNsa &drawn = problem.drawn;
    const Spec &spec = drawn.spec;
    SCOPED_TRACE(specText(spec));
    const NsaResult result = forward(problem.nsa(), 1);
    const NsaGradient gradient = differentiate(problem.nsa(), result, problem.dOut);
    const auto below = [&](int64_t count) { return static_cast<int64_t>(random() % static_cast<uint64_t>(count)); };
    const std::vector<Sequence> keyPlaces = keyRows(drawn.lengths.sequences);
    for (size_t s = 0; s < drawn.lengths.sequences.size(); ++s) {
      const Sequence &sequence = drawn.lengths.sequences[s];
      if (sequence.queries == 0)
        continue;
      const int64_t query = below(sequence.queries), head = below(spec.queryHeads), kvHead = head / spec.group();
      const int64_t row = sequence.firstRow + query, key = below(sequence.keys), d = below(spec.qkDim);
      const int64_t gateHead = spec.gatePerGroup ? kvHead : head;
      const int64_t gateHeads = spec.gatePerGroup ? spec.kvHeads : spec.queryHeads, kind = below(kBranchCount);
      const std::array<int64_t, 4> ofQuery = {sequence.batch, sequence.queryBegin + query, head, d};
      const std::array<int64_t, 4> ofKey = {sequence.keyBatch, sequence.keyBegin + key, kvHead, d};
      expectSlope(problem, drawn.gates, {sequence.batch, sequence.queryBegin + query, gateHead, kind},
                  gradient.gates[(row * gateHeads + gateHead) * kBranchCount + kind], "gates", compared);
      const auto ofQueries = [&](size_t branch) {
        const std::vector<double> &q = gradient.branches[branch].q;
        return q.empty() ? 0 : q[(row * spec.queryHeads + head) * spec.qkDim + d];
      };
      const auto ofKeys = [&](size_t branch) {
        return spec.hasBranch(1 << branch)
                   ? gradient.branches[branch].keys[s].k[(key * spec.kvHeads + kvHead) * spec.qkDim + d]
                   : 0;
      };
      const bool isApart = problem.nsa().qCmp.isGiven();
      expectSlope(problem, drawn.q, ofQuery, ofQueries(1) + ofQueries(2) + (isApart ? 0 : ofQueries(0)), "q", compared);
      if (isApart)
        expectSlope(problem, drawn.qCmp, ofQuery, ofQueries(0), "q_cmp", compared);
      expectSlope(problem, drawn.kSel, ofKey, ofKeys(1), "k_sel", compared);
      expectSlope(problem, drawn.kWin, ofKey, ofKeys(2), "k_win", compared);
      if (!spec.hasBranch(kBranchCmp))
        continue;
      const int64_t place = (keyPlaces[s].firstRow + key) * spec.kvHeads + kvHead, e = below(spec.vDim);
      expectSlope(problem, drawn.kCmp, ofKey, gradient.compression.k.tokens[place * spec.qkDim + d], "k_cmp", compared);
      expectSlope(problem, drawn.vCmp, {sequence.keyBatch, sequence.keyBegin + key, kvHead, e},
                  gradient.compression.v.tokens[place * spec.vDim + e], "v_cmp", compared);
    }
    if (!spec.hasBranch(kBranchCmp) || spec.cmpKind != CmpKind::kLinear)
      continue;
    const int64_t i = below(spec.cmpBlock), x = below(spec.vDim), y = below(spec.vDim);
    expectSlope(problem, drawn.phiV.w, {0, i, x, y}, gradient.compression.v.phi.w[(i * spec.vDim + x) * spec.vDim + y],
                "w_v", ofPhi);
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(ofPhi, 3);
}

// The rows `index` of [rows, size].
std::vector<double> rowsOf(const std::vector<double> &values, std::span<const int64_t> index, int64_t size) {
  std::vector<double> picked;
  for (const int64_t row : index)
    picked.insert(picked.end(), values.begin() + row * size, values.begin() + (row + 1) * size);
  return picked;
}

TEST(NsaGradient, OfSingleQueriesAndTokensIsThatOfAll) {
  std::mt19937_64 random(test::freshSeed());
  int compared = 0;
  for (int round = 0; round < 40; ++round) {
    const Problem problem(random);
    const Spec &spec = problem.drawn.spec;
    SCOPED_TRACE(specText(spec));
    Nsa nsa = problem.nsa();
    const NsaResult result = forward(nsa, 1);
    const NsaGradient whole = differentiate(nsa, result, problem.dOut);
    const int64_t heads = spec.queryHeads, gateHeads = spec.gatePerGroup ? spec.kvHeads : heads;
    std::vector<int64_t> rows;
    for (const Sequence &sequence : nsa.sequences)
      for (int64_t query = 0; query < sequence.queries; query += 7)
        rows.push_back(sequence.firstRow + query);
    for (const Sequence &sequence : nsa.sequences) {
      if (sequence.keys == 0 || rows.empty())
        continue;
      std::vector<int64_t> tokens = {0, sequence.keys / 2, sequence.keys - 1}, places;
      const std::array<KeyGradient, kBranchCount> keys =
          differentiateTokens(nsa, result, problem.dOut, sequence, tokens);
      const size_t s = static_cast<size_t>(&sequence - nsa.sequences.data());
      const int64_t firstPlace = keyRows(nsa.sequences)[s].firstRow;
      for (const int64_t token : tokens)
        places.push_back(firstPlace + token);
      const auto expectKeys = [&](const KeyGradient &single, const std::vector<double> &k, const std::vector<double> &v,
                                  std::span<const int64_t> at, const char *what) {
        expectNear(single.k, rowsOf(k, at, spec.kvHeads * spec.qkDim), 1e-5, std::string("k ") + what);
        expectNear(single.v, rowsOf(v, at, spec.kvHeads * spec.vDim), 1e-5, std::string("v ") + what);
      };
      for (const size_t i : {1, 2})
        if (spec.hasBranch(1 << i)) {
          const KeyGradient &all = whole.branches[i].keys[s];
          expectKeys(keys[i], all.k, all.v, tokens, "of a branch");
          expectNear(keys[i].kTerms, rowsOf(all.kTerms, tokens, spec.kvHeads), 1e-9, "terms");
          for (size_t j = 0; j < keys[i].attended.size(); ++j)
            EXPECT_EQ(keys[i].attended[j], all.attended[tokens[j / spec.kvHeads] * spec.kvHeads + j % spec.kvHeads]);
        }
      if (spec.hasBranch(kBranchCmp)) {
        const CompressionGradient &all = whole.compression;
        // The whole gradient rounds the gradients of compressed rows to fp32.
        expectKeys(keys[0], all.k.tokens, all.v.tokens, places, "of compression");
        for (size_t j = 0; j < keys[0].attended.size(); ++j)
          EXPECT_EQ(keys[0].attended[j], all.k.covered[places[j / spec.kvHeads] * spec.kvHeads + j % spec.kvHeads]);
      }
      ++compared;
    }
    if (rows.empty())
      continue;
    nsa.rows = rows;
    const NsaGradient single =
        differentiateQueries(nsa, forward(nsa, 1), rowsOf(problem.dOut, rows, heads * spec.vDim));
    expectNear(single.gates, rowsOf(whole.gates, rows, gateHeads * kBranchCount), 1e-9, "gates");
    for (size_t i = 0; i < kBranchCount; ++i)
      if (spec.hasBranch(1 << i)) {
        expectNear(single.branches[i].q, rowsOf(whole.branches[i].q, rows, heads * spec.qkDim), 1e-9, "q");
        expectNear(single.branches[i].qTerms, rowsOf(whole.branches[i].qTerms, rows, heads), 1e-9, "terms of q");
        EXPECT_TRUE(single.branches[i].keys.empty());
      }
  }
  EXPECT_GT(compared, 20);
}

} // namespace
} // namespace nsa::reference
