#include "tests/reference/brute_force.h"

#include <cmath>
#include <limits>

namespace nsa::reference {
namespace {

// A token of the batch, described by what the contract's words refer to.
struct Token {
  int64_t sequence;
  int64_t batch;
  int64_t time;        // where it lies in its tensor
  int64_t tokensAfter; // tokens of its own sequence behind it
};

std::vector<Token> listTokens(const Attention &attention, bool keys) {
  std::vector<Token> tokens;
  for (size_t s = 0; s < attention.sequences.size(); ++s) {
    const Sequence &sequence = attention.sequences[s];
    const int64_t count = keys ? sequence.keys : sequence.queries;
    for (int64_t t = 0; t < count; ++t)
      tokens.push_back({static_cast<int64_t>(s), sequence.batch, (keys ? sequence.keyBegin : sequence.queryBegin) + t,
                        count - 1 - t});
  }
  return tokens;
}

} // namespace

std::vector<std::vector<bool>> allowedPairs(const Attention &attention) {
  const std::vector<Token> queries = listTokens(attention, false), keys = listTokens(attention, true);
  std::vector<std::vector<bool>> mask(queries.size(), std::vector<bool>(keys.size(), false));
  for (size_t i = 0; i < queries.size(); ++i) {
    for (size_t j = 0; j < keys.size(); ++j) {
      // The last query and the last key are the same token, so "how far back" counts from the end.
      const int64_t distance = keys[j].tokensAfter - queries[i].tokensAfter;
      mask[i][j] = queries[i].sequence == keys[j].sequence && distance >= 0 &&
                   (attention.op == Operator::kDense || distance < attention.window);
    }
  }
  return mask;
}

AttentionResult attendByMask(const Attention &a) {
  const std::vector<Token> queries = listTokens(a, false), keys = listTokens(a, true);
  const std::vector<std::vector<bool>> mask = allowedPairs(a);
  AttentionResult result;
  for (size_t i = 0; i < queries.size(); ++i) {
    for (int64_t head = 0; head < a.queryHeads; ++head) {
      const int64_t kvHead = head * a.kvHeads / a.queryHeads;
      std::vector<long double> scores(keys.size(), -std::numeric_limits<long double>::infinity());
      for (size_t j = 0; j < keys.size(); ++j) {
        if (!mask[i][j])
          continue;
        scores[j] = 0;
        for (int64_t c = 0; c < a.qkDim; ++c)
          scores[j] += static_cast<long double>(a.q.at(queries[i].batch, queries[i].time, head, c)) *
                       a.k.at(keys[j].batch, keys[j].time, kvHead, c);
        scores[j] *= a.scale != 0 ? a.scale : std::pow(static_cast<double>(a.qkDim), -0.5);
      }
      // No maximum is subtracted: inputs of the check are small enough for exp in long double.
      long double sum = 0;
      for (long double score : scores)
        sum += std::exp(score);
      for (int64_t c = 0; c < a.vDim; ++c) {
        long double value = 0;
        for (size_t j = 0; j < keys.size(); ++j)
          if (mask[i][j])
            value += std::exp(scores[j]) / sum * a.v.at(keys[j].batch, keys[j].time, kvHead, c);
        result.out.push_back(static_cast<double>(value));
      }
      result.lse.push_back(static_cast<double>(std::log(sum)));
    }
  }
  return result;
}

} // namespace nsa::reference
