#include "step_tensors.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace emulation {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class World : public StepTensors {
public:
  World(const StepVariant &variant, const StepCase &test) : StepTensors(variant, test), variant(variant) {}

  StepReport run() {
    make();
    for (Owned *tensor : all)
      if (tensor->memory)
        tensor->memory->expectNow();
    try {
      variant.run(arguments, batch, test.order, test.clustersAtOnce);
    } catch (const std::exception &error) {
      report.errors.emplace_back(error.what());
      return report;
    }
    for (int s = 0; s < batch; ++s)
      for (int token = 0; token < newTokens(s) && works(s); ++token)
        for (int head = 0; head < test.kvHeads; ++head)
          check(s, token, head);
    checkState();
    for (Owned *tensor : all)
      if (tensor->memory)
        report.results.insert(report.results.end(), tensor->memory->data(),
                              tensor->memory->data() + tensor->memory->size());
    return report;
  }

private:
  template <typename... Parts> void error(const Parts &...parts) {
    std::string text;
    const auto add = [&](const auto &part) {
      if constexpr (requires { std::to_string(part); })
        text += std::to_string(part);
      else
        text += part;
    };
    (add(parts), ...);
    if (report.errors.size() < 8)
      report.errors.push_back(text);
  }

  struct Softmax {
    std::vector<double> out;
    double lse = -kInfinity;
    std::vector<double> weights;
  };

  using RowOf = std::function<const uint16_t *(int)>;

  Softmax attend(const Owned &queries, const uint16_t *query, int count, const Owned &keys, const RowOf &key,
                 const Owned &values, const RowOf &value) const {
    Softmax result;
    result.out.assign(static_cast<size_t>(p.vDim), 0.0);
    std::vector<double> x(static_cast<size_t>(p.qkDim));
    for (int i = 0; i < p.qkDim; ++i)
      x[static_cast<size_t>(i)] = queries.get(query + i);
    double top = -kInfinity;
    std::vector<double> &w = result.weights;
    for (int j = 0; j < count; ++j) {
      const uint16_t *row = key(j);
      double sum = 0;
      for (int i = 0; i < p.qkDim; ++i)
        sum += x[static_cast<size_t>(i)] * keys.get(row + i);
      w.push_back(sum * scale);
      top = std::fmax(top, w.back());
    }
    double total = 0;
    for (double &weight : w) {
      weight = std::exp(weight - (top == -kInfinity ? 0 : top));
      total += weight;
    }
    if (total == 0)
      return result;
    result.lse = top + std::log(total);
    for (int j = 0; j < count; ++j) {
      w[static_cast<size_t>(j)] /= total;
      if (!value)
        continue;
      const uint16_t *row = value(j);
      for (int i = 0; i < p.vDim; ++i)
        result.out[static_cast<size_t>(i)] += w[static_cast<size_t>(j)] * values.get(row + i);
    }
    return result;
  }

  // The row of a token, which is not yet in the pool if it is a new one.
  const uint16_t *keyOf(const Owned &pool, const Owned &fresh, int s, int t, int head) const {
    return t >= length(s) ? newRow(fresh, s, t, head) : token(pool, s, t, head);
  }
  uint16_t *newRow(const Owned &fresh, int s, int t, int head) const {
    return fresh.row(entryOf(s), timeOf(s) + t - length(s), head);
  }

  // The compressed row that a new token completes, in fp64, compared with what the kernel stored.
  void checkFresh(const Owned &pool, const Owned &ring, const Owned &fresh, const Weights &weights, int columns, int s,
                  int head, int block) {
    std::vector<double> inputs;
    for (int t = block * p.cmpStride; t < block * p.cmpStride + p.cmpBlock; ++t)
      for (int i = 0; i < columns; ++i)
        inputs.push_back(t >= length(s) ? fresh.get(newRow(fresh, s, t, head) + i)
                                        : before(ring, ring.row(s, t % p.cmpBlock, head) + i));
    const std::vector<double> right = compress(inputs, weights, columns);
    uint16_t *stored = compressed(pool, s, block, head);
    for (int i = 0; i < columns; ++i) {
      const double expected = right[static_cast<size_t>(i)];
      if (!(std::abs(ring.get(stored + i) - expected) <= std::abs(expected) * (p.isBf16 ? 0.0045 : 0.0006) + 4e-6))
        error("sequence ", s, " head ", head, ": compressed row ", block, " column ", i, " is ", ring.get(stored + i),
              ", not ", expected);
    }
    pool.accept(stored, static_cast<size_t>(columns) * 2);
  }

  // Adds the products of numbers with rows of a matrix, [input] or [token][input], to sums.
  void multiply(std::vector<double> &sums, const std::vector<double> &numbers, const Owned &matrix, int inner) const {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int number = static_cast<int>(i);
      const uint16_t *row = inner > 0 ? matrix.row(number / inner, number % inner, 0) : matrix.row(number, 0, 0);
      for (size_t j = 0; j < sums.size(); ++j)
        sums[j] += numbers[i] * matrix.get(row + j);
    }
  }
  std::vector<double> biases(const Owned &bias, int columns) const {
    std::vector<double> result(static_cast<size_t>(columns), 0.0);
    for (int i = 0; i < columns && bias.memory; ++i)
      result[static_cast<size_t>(i)] = bias.get(bias.row(0, 0, 0) + i);
    return result;
  }

  std::vector<double> compress(std::vector<double> inputs, const Weights &weights, int columns) const {
    std::vector<double> result(static_cast<size_t>(columns), 0.0);
    if (p.compression == Compression::kMean) {
      for (size_t i = 0; i < inputs.size(); ++i)
        result[i % static_cast<size_t>(columns)] += inputs[i] / p.cmpBlock;
      return result;
    }
    for (size_t i = 0; i < inputs.size() && weights.pe.memory; ++i)
      inputs[i] +=
          weights.pe.get(weights.pe.row(static_cast<int>(i) / columns, 0, 0) + i % static_cast<size_t>(columns));
    if (p.compression == Compression::kLinear) {
      result = biases(weights.b, columns);
      multiply(result, inputs, weights.w, columns);
      return result;
    }
    std::vector<double> hidden = biases(weights.b1, p.mlpHidden);
    multiply(hidden, inputs, weights.w1, columns);
    for (double &x : hidden)
      x = p.activation == Activation::kRelu   ? std::max(x, 0.0)
          : p.activation == Activation::kGelu ? x / 2 * (1 + std::erf(x / std::sqrt(2.0)))
                                              : x / (1 + std::exp(-x));
    result = biases(weights.b2, columns);
    multiply(result, hidden, weights.w2, 0);
    return result;
  }

  // What an element held before the step.
  float before(const Owned &tensor, const uint16_t *at) const {
    const auto *bytes = reinterpret_cast<const unsigned char *>(at);
    uint16_t bits;
    std::memcpy(&bits, tensor.memory->expected.data() + (bytes - tensor.memory->data()), 2);
    return tensor.get(&bits);
  }

  // Errors are taken relative to `least`, if the right row is shorter: a sum of branches may nearly cancel.
  void checkRow(const char *name, const Owned &tensor, uint16_t *row, const std::vector<double> &right, int s, int h,
                double least = 0) {
    double wrong = 0, norm = least;
    for (int i = 0; i < p.vDim; ++i) {
      const double value = tensor.get(row + i), expected = right[static_cast<size_t>(i)];
      if (std::isnan(value) != std::isnan(expected))
        return error(name, " of sequence ", s, " head ", h, " column ", i, " is ", value, ", not ", expected);
      if (std::isnan(value))
        continue;
      wrong += (value - expected) * (value - expected);
      norm += least == 0 ? expected * expected : 0;
    }
    const double relative = norm == 0 ? std::sqrt(wrong) : std::sqrt(wrong / norm);
    report.worst = std::max(report.worst, relative);
    if (!(relative < (p.isBf16 ? 8e-3 : 1e-3)))
      error(name, " of sequence ", s, " head ", h, " is wrong by ", relative);
    tensor.accept(row, static_cast<size_t>(p.vDim) * 2);
  }

  void checkLse(const char *name, const Owned &tensor, int entry, int time, int h, double right) {
    const float *at = tensor.at<float>(entry, time, h);
    const bool same = std::isnan(right)   ? std::isnan(*at)
                      : std::isinf(right) ? *at == static_cast<float>(right)
                                          : std::abs(*at - right) < 2e-3 * (1 + std::abs(right));
    if (!same)
      error(name, " of head ", h, " is ", *at, ", not ", right);
    tensor.accept(at, 4);
  }

  void check(int s, int token, int head) {
    const int position = length(s) + token, tokens = position + 1;
    const int entry = entryOf(s), time = timeOf(s) + token;
    const int blocks = position / p.selBlock + 1, seen = visible(tokens);
    if (compresses() && seen > visible(position)) {
      checkFresh(kComp, kRaw, kCmp, ofK, p.qkDim, s, head, seen - 1);
      checkFresh(vComp, vRaw, vCmp, ofV, p.vDim, s, head, seen - 1);
    }
    const bool shares = test.onePool && p.hasSel && p.hasWin;
    const Owned &kw = shares ? kSelCache : kWinCache, &vw = shares ? vSelCache : vWinCache;
    const Owned &kwNew = shares ? kSel : kWin, &vwNew = shares ? vSel : vWin;

    std::vector<Softmax> cmp;
    std::vector<double> sums(static_cast<size_t>(seen), 0.0);
    for (int i = 0; compresses() && i < p.group; ++i) {
      cmp.push_back(attend(
          qCmp, qCmp.row(entry, time, head * p.group + i), seen, kComp,
          [&](int c) { return compressed(kComp, s, c, head); }, vComp,
          p.hasCmp ? RowOf([&](int c) { return compressed(vComp, s, c, head); }) : RowOf()));
      for (int c = 0; c < seen; ++c)
        sums[static_cast<size_t>(c)] += cmp.back().weights[static_cast<size_t>(c)];
    }
    std::vector<int> list;
    if (p.hasSel)
      list = checkList(s, head, entry, time, blocks, sums);
    std::vector<int> selected;
    for (int block : list)
      for (int t = block * p.selBlock; t < std::min((block + 1) * p.selBlock, tokens); ++t)
        selected.push_back(t);
    const int width = std::min(test.window, tokens);
    for (int i = 0; i < p.group; ++i) {
      const int h = head * p.group + i;
      const uint16_t *query = q.row(entry, time, h);
      std::vector<double> total(static_cast<size_t>(p.vDim), 0.0);
      double gate[3], summands = 0;
      gateValues(entry, time, p.gatePerGroup ? head : h, gate);
      const auto add = [&](const char *name, int branch, const Softmax &softmax, Owned &o, Owned &lse) {
        for (int j = 0; j < p.vDim; ++j) {
          const double summand = gate[branch] * softmax.out[static_cast<size_t>(j)];
          total[static_cast<size_t>(j)] += summand;
          summands += std::isnan(summand) ? 0 : summand * summand;
        }
        if (!test.outputs)
          return;
        checkRow(name, o, o.row(entry, time, h), softmax.out, s, h);
        checkLse(name, lse, entry, time, h, softmax.lse);
      };
      if (p.hasCmp)
        add("cmp", 0, cmp[static_cast<size_t>(i)], oCmp, lseCmp);
      if (p.hasSel)
        add("sel", 1,
            attend(
                q, query, static_cast<int>(selected.size()), kSelCache,
                [&](int j) { return keyOf(kSelCache, kSel, s, selected[static_cast<size_t>(j)], head); }, vSelCache,
                [&](int j) { return keyOf(vSelCache, vSel, s, selected[static_cast<size_t>(j)], head); }),
            oSel, lseSel);
      if (p.hasWin)
        add("win", 2,
            attend(
                q, query, width, kw, [&](int j) { return keyOf(kw, kwNew, s, tokens - width + j, head); }, vw,
                [&](int j) { return keyOf(vw, vwNew, s, tokens - width + j, head); }),
            oWin, lseWin);
      checkRow("out", out, out.row(entry, time, h), total, s, h, summands);
    }
    if (test.outputs) {
      const int right = (p.hasCmp ? seen : 0) + static_cast<int>(selected.size()) + (p.hasWin ? width : 0);
      const int32_t *at = reads.at<int32_t>(entry, time, head);
      if (*at != right)
        error("reads of sequence ", s, " head ", head, " is ", *at, ", not ", right);
      reads.accept(at, 4);
    }
  }

  void gateValues(int entry, int time, int row, double (&gate)[3]) const {
    double sum = 0;
    for (int b = 0; b < 3; ++b) {
      gate[b] = gates.get(gates.at<uint16_t>(entry, time, row, b));
      sum += std::exp(gate[b]);
    }
    for (double &value : gate)
      value = p.gate == Gate::kSoftmax   ? std::exp(value) / sum
              : p.gate == Gate::kSigmoid ? 1 / (1 + std::exp(-value))
                                         : value;
  }

  // Whether all compressed blocks that can meet a selection block exist.
  bool isWhole(int block, size_t keys) const {
    return block * p.selBlock >= p.cmpBlock - p.cmpStride &&
           static_cast<size_t>((block + 1) * p.selBlock / p.cmpStride) <= keys;
  }

  // Returns the kernel's list if the test asks for it, and else the right list.
  std::vector<int> checkList(int s, int head, int entry, int time, int blocks, const std::vector<double> &sums) {
    std::vector<double> scores(static_cast<size_t>(blocks), 0.0);
    std::vector<int> order(static_cast<size_t>(blocks));
    std::iota(order.begin(), order.end(), 0);
    for (int j = 0; j < blocks; ++j) {
      double &score = scores[static_cast<size_t>(j)];
      for (int c = 0; c < static_cast<int>(sums.size()); ++c) {
        const int first = std::max(c * p.cmpStride, j * p.selBlock);
        const int past = std::min(c * p.cmpStride + p.cmpBlock, (j + 1) * p.selBlock);
        if (past > first)
          score += sums[static_cast<size_t>(c)] * (past - first) / p.cmpStride;
      }
      if (std::isnan(score))
        score = -1;
      if (j < test.initBlocks || j > blocks - 1 - test.localBlocks)
        score = kInfinity;
    }
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      const double first = scores[static_cast<size_t>(a)], second = scores[static_cast<size_t>(b)];
      return first > second || (first == second && a < b);
    });
    order.resize(static_cast<size_t>(std::min(blocks, p.selCount)));
    std::sort(order.begin(), order.end());
    if (!test.outputs)
      return order;
    std::vector<int> list;
    for (int i = 0; i < p.selCount; ++i) {
      const int32_t *at = blockList.at<int32_t>(entry, time, head, i);
      blockList.accept(at, 4);
      const bool exists = i < static_cast<int>(order.size());
      if (exists ? *at < 0 || *at >= blocks || (i > 0 && *at <= list.back()) : *at != -1) {
        error("block_list of sequence ", s, " head ", head, " slot ", i, " is ", *at);
        return order;
      }
      if (exists)
        list.push_back(*at);
    }
    if (list != order) {
      // A block may take the place of another one if the two tie.
      std::vector<int> missing, instead;
      std::set_difference(order.begin(), order.end(), list.begin(), list.end(), std::back_inserter(missing));
      std::set_difference(list.begin(), list.end(), order.begin(), order.end(), std::back_inserter(instead));
      ++report.differingLists;
      for (size_t i = 0; i < missing.size(); ++i) {
        const double a = scores[static_cast<size_t>(missing[i])], b = scores[static_cast<size_t>(instead[i])];
        // Blocks that meet as many compressed blocks have the same score to the bit if all keys are equal.
        const bool same = test.equalKeys && isWhole(missing[i], sums.size()) && isWhole(instead[i], sums.size());
        if (!(std::abs(a - b) <= 1e-4 * std::max(a, b)) || same || (a == 0 && b == 0) || a < 0)
          error("block_list of sequence ", s, " head ", head, " has ", instead[i], " (", b, ") instead of ", missing[i],
                " (", a, ")");
      }
    }
    return list;
  }

  // What the step changed in the cache, and that nothing else was changed.
  void checkState() {
    const bool shares = test.onePool && p.hasSel && p.hasWin;
    for (int s = 0; s < batch; ++s) {
      if (!works(s))
        continue;
      for (int number = 0; number < newTokens(s) * test.kvHeads; ++number) {
        const int head = number % test.kvHeads, t = length(s) + number / test.kvHeads;
        const auto appended = [&](const char *name, const Owned &pool, uint16_t *row, const Owned &fresh, int columns) {
          if (std::memcmp(row, newRow(fresh, s, t, head), static_cast<size_t>(columns) * 2) != 0)
            error(name, " of sequence ", s, " head ", head, " does not hold the new row");
          pool.accept(row, static_cast<size_t>(columns) * 2);
        };
        if (p.hasSel) {
          appended("k_sel", kSelCache, token(kSelCache, s, t, head), kSel, p.qkDim);
          appended("v_sel", vSelCache, token(vSelCache, s, t, head), vSel, p.vDim);
        }
        if (p.hasWin && !shares) {
          appended("k_win", kWinCache, token(kWinCache, s, t, head), kWin, p.qkDim);
          appended("v_win", vWinCache, token(vWinCache, s, t, head), vWin, p.vDim);
        }
        if (p.hasCmp || p.hasSel) {
          appended("k_raw", kRaw, kRaw.row(s, t % p.cmpBlock, head), kCmp, p.qkDim);
          appended("v_raw", vRaw, vRaw.row(s, t % p.cmpBlock, head), vCmp, p.vDim);
        }
      }
      if (*lengths.at<int32_t>(s) != length(s) + newTokens(s))
        error("cache_seqlens of sequence ", s, " is ", *lengths.at<int32_t>(s));
      lengths.accept(lengths.at<int32_t>(s), 4);
      const int marks = newTokens(s) * test.kvHeads;
      for (int number = 0; marks > 1 && number < marks; ++number) {
        const int32_t *at = arrivals.at<int32_t>(s) + 2 * number;
        uint64_t mark;
        std::memcpy(&mark, at, 8);
        if (mark != 0)
          error("mark ", number, " of sequence ", s, " is left");
        arrivals.accept(at, 8);
      }
    }
    const int32_t *words = status.at<int32_t>(0);
    if (words[0] != test.code || (test.code != 0 && words[1] != test.faultySequence))
      error("the status is ", words[0], " at ", words[1]);
    status.accept(words, 8);
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i]->memory &&
          !std::equal(all[i]->memory->expected.begin(), all[i]->memory->expected.end(), all[i]->memory->data()))
        error("tensor ", i, " was changed where it must not be");
  }

  const StepVariant &variant;
  StepReport report;
};

} // namespace

StepReport runStepCase(const StepVariant &variant, const StepCase &test) { return World(variant, test).run(); }

} // namespace emulation
