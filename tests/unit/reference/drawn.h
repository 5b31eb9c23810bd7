// Drawn problems for the reference's tests: specs with sizes that are multiples of nothing, small lengths, tensors.
// Ownership: a DrawnNsa owns what its views borrow; it may be moved, not copied. Thread-safety: values.
#pragma once

#include "tools/reference/nsa.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace nsa::reference {

// Small enough for the brute force; every rule of docs/specification.md 1 holds.
Spec drawSpec(std::mt19937_64 &random);
// For failure messages.
std::string specText(const Spec &spec);

struct DrawnLengths {
  Layout layout = Layout::kDense;
  std::vector<Sequence> sequences;
  int64_t batches = 0, queryTimes = 0, keyTimes = 0; // of the tensors
};
// Dense or packed, with empty sequences and T_q < T among them.
DrawnLengths drawLengths(std::mt19937_64 &random, const Spec &spec, int64_t maxTokens);
DrawnLengths packedLengths(const std::vector<int64_t> &queries, const std::vector<int64_t> &keys, const Spec &spec);
DrawnLengths denseLengths(int64_t batch, int64_t queries, int64_t keys);

// Normal numbers times `size`.
OwnedTensor drawTensor(std::mt19937_64 &random, DType dtype, int64_t batches, int64_t times, int64_t heads,
                       int64_t columns, double size = 1);
void setElement(OwnedTensor &tensor, int64_t batch, int64_t time, int64_t head, int64_t column, double value);
void fillRow(OwnedTensor &tensor, int64_t batch, int64_t time, int64_t head, double value);

struct DrawnPhi {
  OwnedTensor pe, w, b, w1, b1, w2, b2;
  bool hasPe = false, hasBias = false;
  Phi phi(const Spec &spec) const;
};
DrawnPhi drawPhi(std::mt19937_64 &random, const Spec &spec, int64_t columns);

struct DrawnNsa {
  Spec spec;
  DrawnLengths lengths;
  OwnedTensor q, qCmp, kCmp, vCmp, kSel, vSel, kWin, vWin, gates;
  DrawnPhi phiK, phiV;

  DrawnNsa() = default;
  DrawnNsa(DrawnNsa &&) = default;
  DrawnNsa &operator=(DrawnNsa &&) = default;

  Nsa nsa() const;
  Selection selection(const Compressed &compressed) const;
};
DrawnNsa drawNsa(std::mt19937_64 &random, const Spec &spec, DrawnLengths lengths);
// Lists of `selCount` blocks, and sequences with more blocks than that.
DrawnNsa drawLongLists(std::mt19937_64 &random, int32_t selCount);

// A view of lists that lie as `select` gives them, for sequences whose rows are numbered like their tensor.
BlockListView listView(const BlockLists &lists, const DrawnLengths &lengths);

// NaN and infinities equal themselves only.
void expectNear(const std::vector<double> &actual, const std::vector<double> &expected, double margin,
                const std::string &what);
void expectSame(const AttentionResult &actual, const AttentionResult &expected);
// Lists may differ only where scores are equal but for the order of their sums, as the scores of equal keys are.
void expectSameLists(const Selection &selection, const BlockLists &actual, const BlockLists &expected);
// All branches, lists, output and reads.
void expectSame(const NsaResult &actual, const NsaResult &expected);

} // namespace nsa::reference
