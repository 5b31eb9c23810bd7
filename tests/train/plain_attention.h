// The attention of docs/examples/train once more, in plain loops: rotation, compression, the three branches and the
// gates, forward and backward (docs/specification.md 3 to 9). It takes the lists of selected blocks from the outside.
// In fp64 it is what the example's training steps are compared with. Thread-safety: one thread at a time; starts its
// own threads, each of which has a key/value head of a sequence.
#pragma once

#include "docs/examples/train/attention.h"
#include "docs/examples/train/parallel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace example {

// The sum over a head's row, in lanes that the compiler may lay into vectors.
template <typename Real> Real dotRow(const Real *a, const Real *b) {
  std::array<Real, 16> sums{};
  for (std::size_t i = 0; i < kHeadDim; i += sums.size())
    for (std::size_t lane = 0; lane < sums.size(); ++lane)
      sums[lane] += a[i + lane] * b[i + lane];
  Real sum = 0;
  for (Real value : sums)
    sum += value;
  return sum;
}

template <typename Real> void addScaled(Real *to, Real factor, const Real *row) {
  for (std::int64_t i = 0; i < kHeadDim; ++i)
    to[i] += factor * row[i];
}

// Rows of one head, [rows, kHeadDim], that were picked from a larger tensor.
template <typename Real> struct Rows {
  std::vector<Real> values;
  explicit Rows(std::int64_t rows) : values(static_cast<std::size_t>(rows * kHeadDim)) {}
  Real *operator[](std::int64_t row) { return values.data() + row * kHeadDim; }
  const Real *operator[](std::int64_t row) const { return values.data() + row * kHeadDim; }
};

// The softmax of one query over the keys that it may attend.
template <typename Real> struct Softmax {
  std::vector<std::int64_t> keys;
  std::vector<Real> weights;

  void compute(const Real *q, const Rows<Real> &k) {
    weights.resize(keys.size());
    Real largest = -std::numeric_limits<Real>::infinity(), sum = 0;
    for (std::size_t i = 0; i < keys.size(); ++i)
      largest = std::max(largest, weights[i] = kScale * dotRow(q, k[keys[i]]));
    for (Real &weight : weights)
      sum += weight = std::exp(weight - largest);
    for (Real &weight : weights)
      weight /= sum;
  }
  void attend(const Rows<Real> &v, Real *out) const {
    std::fill(out, out + kHeadDim, Real{0});
    for (std::size_t i = 0; i < keys.size(); ++i)
      addScaled(out, weights[i], v[keys[i]]);
  }
  // Adds the gradients of what `attend` read, for the gradient dOut of what it wrote.
  void backward(const Real *q, const Rows<Real> &k, const Rows<Real> &v, const Real *out, const Real *dOut, Real *dQ,
                Rows<Real> &dK, Rows<Real> &dV) const {
    const Real delta = dotRow(out, dOut);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Real dScore = kScale * weights[i] * (dotRow(dOut, v[keys[i]]) - delta);
      addScaled(dV[keys[i]], weights[i], dOut);
      addScaled(dK[keys[i]], dScore, q);
      addScaled(dQ, dScore, k[keys[i]]);
    }
  }

  static inline const Real kScale = static_cast<Real>(1 / std::sqrt(static_cast<double>(kHeadDim)));
};

// The cosine and the sine of each position and pair.
inline const std::vector<std::array<double, 2>> &rotationAngles() {
  static const std::vector<std::array<double, 2>> angles = [] {
    std::vector<std::array<double, 2>> made;
    for (std::int64_t position = 0; position < kSequence; ++position)
      for (std::int64_t j = 0; j < kHeadDim / 2; ++j) {
        const double angle =
            static_cast<double>(position) * std::pow(10000.0, -2.0 * static_cast<double>(j) / kHeadDim);
        made.push_back({std::cos(angle), std::sin(angle)});
      }
    return made;
  }();
  return angles;
}

// Turns a head's row by the angles of its position, or back.
template <typename Real> void rotateRow(Real *row, std::int64_t position, bool back) {
  constexpr std::int64_t kHalf = kHeadDim / 2;
  const std::array<double, 2> *angles = rotationAngles().data() + position * kHalf;
  for (std::int64_t j = 0; j < kHalf; ++j) {
    const Real cosine = static_cast<Real>(angles[j][0]), sine = static_cast<Real>(back ? -angles[j][1] : angles[j][1]);
    const Real a = row[j], b = row[j + kHalf];
    row[j] = a * cosine - b * sine;
    row[j + kHalf] = a * sine + b * cosine;
  }
}

template <typename Real> class PlainAttention final : public Attention<Real> {
public:
  // `lists(layer)`: the selected blocks of each query, [batch, kSequence, kKvHeads, kSelCount], -1 behind the last.
  using Lists = std::function<const std::vector<std::int32_t> &(std::int64_t)>;
  explicit PlainAttention(Lists lists, bool selectedGradient = true)
      : lists(std::move(lists)), selectedGradient(selectedGradient) {}

  void forward(std::int64_t layer, std::int64_t batch, const Real *projected, Real *out) override {
    const std::vector<std::int32_t> &list = lists(layer);
    std::vector<double> shortfalls(static_cast<std::size_t>(batch * kKvHeads));
    parallelFor(batch * kKvHeads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t each = begin; each < end; ++each) {
        Group group(projected, list.data(), each);
        shortfalls[static_cast<std::size_t>(each)] = group.forward(out);
      }
    });
    shortfall = std::max(shortfall, *std::max_element(shortfalls.begin(), shortfalls.end()));
  }

  void backward(std::int64_t layer, std::int64_t batch, const Real *projected, const Real *dOut,
                Real *dProjected) override {
    const std::vector<std::int32_t> &list = lists(layer);
    std::fill(dProjected, dProjected + batch * kSequence * column::kEnd, Real{0});
    parallelFor(batch * kKvHeads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t each = begin; each < end; ++each) {
        Group group(projected, list.data(), each);
        group.backward(dOut, dProjected, selectedGradient);
      }
    });
  }

  // Over all forward passes: by how much, relative to its own score, a block that was left out has a greater score than
  // a block that was chosen. 0 where the lists are right.
  double shortfall = 0;

private:
  static constexpr std::int64_t kGroup = kHeads / kKvHeads;
  // Branches, in the order of the gates.
  enum { kCmpBranch, kSelBranch, kWinBranch };

  // One key/value head of one sequence, with its query heads.
  class Group {
  public:
    Group(const Real *projected, const std::int32_t *list, std::int64_t each)
        : projected(projected), list(list), sequence(each / kKvHeads), head(each % kKvHeads) {
      const std::array<std::int64_t, kBranches> keyColumns = {column::kKeyCmp, column::kKeySel, column::kKeyWin};
      const std::array<std::int64_t, kBranches> valueColumns = {column::kValueCmp, column::kValueSel,
                                                                column::kValueWin};
      for (std::size_t branch = 0; branch < kBranches; ++branch) {
        k.push_back(pick(keyColumns[branch] + head * kHeadDim, branch != kCmpBranch));
        v.push_back(pick(valueColumns[branch] + head * kHeadDim, false));
      }
      k[kCmpBranch] = compress(k[kCmpBranch]);
      v[kCmpBranch] = compress(v[kCmpBranch]);
      for (std::int64_t i = 0; i < kGroup; ++i)
        for (bool rotated : {false, true})
          q.push_back(pick(column::kQuery + (head * kGroup + i) * kHeadDim, rotated));
    }

    double forward(Real *out) {
      double shortfall = 0;
      for (std::int64_t token = 0; token < kSequence; ++token) {
        std::vector<double> importance(kCompressed);
        for (std::int64_t i = 0; i < kGroup; ++i) {
          attend(token, i);
          for (std::size_t block = 0; block < softmax[kCmpBranch].keys.size(); ++block)
            importance[block] += static_cast<double>(softmax[kCmpBranch].weights[block]);
          Real *row = out + outRow(token, i);
          std::fill(row, row + kHeadDim, Real{0});
          for (std::size_t branch = 0; branch < kBranches; ++branch)
            addScaled(row, gate(token, i, branch), outs[branch].data());
        }
        shortfall = std::max(shortfall, shortfallOf(token, importance));
      }
      return shortfall;
    }

    void backward(const Real *dOut, Real *dProjected, bool selectedGradient) {
      std::vector<Rows<Real>> dK, dV;
      for (std::size_t branch = 0; branch < kBranches; ++branch)
        for (std::vector<Rows<Real>> *rows : {&dK, &dV})
          rows->emplace_back(branch == kCmpBranch ? kCompressed : kSequence);
      std::vector<Rows<Real>> dQ(2 * kGroup, Rows<Real>(kSequence));
      for (std::int64_t token = 0; token < kSequence; ++token)
        for (std::int64_t i = 0; i < kGroup; ++i) {
          attend(token, i);
          const Real *dRow = dOut + outRow(token, i);
          for (std::size_t branch = 0; branch < kBranches; ++branch) {
            if (branch == kSelBranch && !selectedGradient)
              continue;
            const Real weight = gate(token, i, branch);
            std::array<Real, kHeadDim> dBranch;
            for (std::size_t column = 0; column < kHeadDim; ++column)
              dBranch[column] = weight * dRow[column];
            const std::size_t query = queryOf(i, branch);
            softmax[branch].backward(q[query][token], k[branch], v[branch], outs[branch].data(), dBranch.data(),
                                     dQ[query][token], dK[branch], dV[branch]);
            dProjected[gatePlace(token, i, branch)] = weight * (1 - weight) * dotRow(dRow, outs[branch].data());
          }
        }
      dK[kCmpBranch] = spread(dK[kCmpBranch]);
      dV[kCmpBranch] = spread(dV[kCmpBranch]);
      put(dK[kCmpBranch], column::kKeyCmp + head * kHeadDim, false, dProjected);
      put(dK[kSelBranch], column::kKeySel + head * kHeadDim, true, dProjected);
      put(dK[kWinBranch], column::kKeyWin + head * kHeadDim, true, dProjected);
      put(dV[kCmpBranch], column::kValueCmp + head * kHeadDim, false, dProjected);
      put(dV[kSelBranch], column::kValueSel + head * kHeadDim, false, dProjected);
      put(dV[kWinBranch], column::kValueWin + head * kHeadDim, false, dProjected);
      for (std::int64_t i = 0; i < kGroup; ++i)
        for (std::size_t rotated : {0, 1})
          put(dQ[static_cast<std::size_t>(2 * i) + rotated], column::kQuery + (head * kGroup + i) * kHeadDim,
              rotated == 1, dProjected);
    }

  private:
    std::int64_t row(std::int64_t token) const { return (sequence * kSequence + token) * column::kEnd; }
    std::int64_t outRow(std::int64_t token, std::int64_t i) const {
      return (sequence * kSequence + token) * kQueryRow + (head * kGroup + i) * kHeadDim;
    }
    std::int64_t gatePlace(std::int64_t token, std::int64_t i, std::size_t branch) const {
      return row(token) + column::kGates + (head * kGroup + i) * kBranches + static_cast<std::int64_t>(branch);
    }
    Real gate(std::int64_t token, std::int64_t i, std::size_t branch) const {
      return 1 / (1 + std::exp(-projected[gatePlace(token, i, branch)]));
    }
    static std::size_t queryOf(std::int64_t i, std::size_t branch) {
      return static_cast<std::size_t>(2 * i) + (branch == kCmpBranch ? 0 : 1);
    }

    Rows<Real> pick(std::int64_t column, bool rotated) const {
      Rows<Real> rows(kSequence);
      for (std::int64_t token = 0; token < kSequence; ++token) {
        std::copy_n(projected + row(token) + column, kHeadDim, rows[token]);
        if (rotated)
          rotateRow(rows[token], token, false);
      }
      return rows;
    }
    void put(Rows<Real> &rows, std::int64_t column, bool rotated, Real *dProjected) const {
      for (std::int64_t token = 0; token < kSequence; ++token) {
        if (rotated)
          rotateRow(rows[token], token, true);
        addScaled(dProjected + row(token) + column, Real{1}, rows[token]);
      }
    }
    static Rows<Real> compress(const Rows<Real> &raw) {
      Rows<Real> compressed(kCompressed);
      for (std::int64_t block = 0; block < kCompressed; ++block)
        for (std::int64_t i = 0; i < kCmpBlock; ++i)
          addScaled(compressed[block], Real{1} / kCmpBlock, raw[block * kCmpStride + i]);
      return compressed;
    }
    // The gradient of `compress`.
    static Rows<Real> spread(const Rows<Real> &compressed) {
      Rows<Real> raw(kSequence);
      for (std::int64_t block = 0; block < kCompressed; ++block)
        for (std::int64_t i = 0; i < kCmpBlock; ++i)
          addScaled(raw[block * kCmpStride + i], Real{1} / kCmpBlock, compressed[block]);
      return raw;
    }

    // The three branches of one query head at one token.
    void attend(std::int64_t token, std::int64_t i) {
      for (Softmax<Real> &each : softmax)
        each.keys.clear();
      for (std::int64_t block = 0; block < kCompressed && block * kCmpStride + kCmpBlock - 1 <= token; ++block)
        softmax[kCmpBranch].keys.push_back(block);
      for (std::int64_t slot = 0; slot < kSelCount; ++slot)
        if (const std::int64_t block = chosen(token)[slot]; block >= 0)
          for (std::int64_t key = block * kSelBlock; key < (block + 1) * kSelBlock && key <= token; ++key)
            softmax[kSelBranch].keys.push_back(key);
      for (std::int64_t key = std::max<std::int64_t>(0, token - kWindow + 1); key <= token; ++key)
        softmax[kWinBranch].keys.push_back(key);
      for (std::size_t branch = 0; branch < kBranches; ++branch) {
        softmax[branch].compute(q[queryOf(i, branch)][token], k[branch]);
        softmax[branch].attend(v[branch], outs[branch].data());
      }
    }

    const std::int32_t *chosen(std::int64_t token) const {
      return list + ((sequence * kSequence + token) * kKvHeads + head) * kSelCount;
    }
    double shortfallOf(std::int64_t token, const std::vector<double> &importance) const {
      const std::int64_t own = token / kSelBlock;
      double best = 0, worst = std::numeric_limits<double>::infinity(); // of those left out, of those chosen
      for (std::int64_t block = kInitBlocks; block <= own - kLocalBlocks; ++block) {
        double score = 0;
        for (std::int64_t c = 0; c < kCompressed; ++c) {
          const std::int64_t begin = std::max(c * kCmpStride, block * kSelBlock);
          const std::int64_t end = std::min(c * kCmpStride + kCmpBlock, (block + 1) * kSelBlock);
          if (end > begin)
            score += static_cast<double>(end - begin) / kCmpStride * importance[static_cast<std::size_t>(c)];
        }
        const bool isChosen = std::find(chosen(token), chosen(token) + kSelCount, block) != chosen(token) + kSelCount;
        (isChosen ? worst : best) = isChosen ? std::min(worst, score) : std::max(best, score);
      }
      return best > worst ? (best - worst) / best : 0;
    }

    const Real *projected;
    const std::int32_t *list;
    const std::int64_t sequence, head;
    std::vector<Rows<Real>> q;    // of each query head as it is, and rotated
    std::vector<Rows<Real>> k, v; // of each branch
    std::array<Softmax<Real>, kBranches> softmax;
    std::array<std::array<Real, kHeadDim>, kBranches> outs;
  };

  Lists lists;
  bool selectedGradient;
};

} // namespace example
