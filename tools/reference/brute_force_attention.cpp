#include "tools/reference/brute_force.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::reference {
namespace {

// A token of the batch, or a compressed block, described by what the contract's words refer to.
struct Token {
  int64_t sequence;
  int64_t batch;
  int64_t time;        // where it lies in its tensor
  int64_t index;       // which of its sequence it is
  int64_t tokensAfter; // tokens of its own sequence behind it; behind its last token. An offset moves a key.
};

std::vector<Token> listQueries(const Attention &attention) {
  std::vector<Token> tokens;
  for (size_t s = 0; s < attention.sequences.size(); ++s) {
    const Sequence &sequence = attention.sequences[s];
    for (int64_t t = 0; t < sequence.queries; ++t)
      tokens.push_back({static_cast<int64_t>(s), sequence.batch, sequence.queryBegin + t, t, sequence.queries - 1 - t});
  }
  return tokens;
}

std::vector<Token> listKeys(const Attention &attention) {
  std::vector<Token> tokens;
  for (size_t s = 0; s < attention.sequences.size(); ++s) {
    const Sequence &sequence = attention.sequences[s];
    const int64_t number = static_cast<int64_t>(s);
    if (definitionOf(attention.spec.op).keys == MetKeys::kBlocks) {
      int64_t end = attention.spec.cmpBlock; // of block c
      for (int64_t c = 0; end <= sequence.keys; ++c, end += attention.spec.cmpStride)
        tokens.push_back(
            {number, sequence.keyBatch, sequence.blockBegin + c, c, sequence.keys - end - sequence.keyOffset});
    } else {
      for (int64_t t = 0; t < sequence.keys; ++t)
        tokens.push_back(
            {number, sequence.keyBatch, sequence.keyBegin + t, t, sequence.keys - 1 - t - sequence.keyOffset});
    }
  }
  return tokens;
}

bool isInSelectedBlock(const Attention &attention, int64_t row, int64_t kvHead, int64_t key) {
  for (int64_t slot = 0; slot < attention.blockLists.slots; ++slot) {
    const int64_t at = (row * attention.blockLists.kvHeads + kvHead) * attention.blockLists.slots + slot;
    const int64_t block = attention.blockLists.blocks[at];
    if (block >= 0 && key / attention.spec.selBlock == block)
      return true;
  }
  return false;
}

} // namespace

std::vector<std::vector<bool>> allowedPairs(const Attention &attention, int64_t kvHead) {
  const std::vector<Token> queries = listQueries(attention), keys = listKeys(attention);
  const MetKeys met = definitionOf(attention.spec.op).keys;
  std::vector<std::vector<bool>> mask(queries.size(), std::vector<bool>(keys.size(), false));
  for (size_t i = 0; i < queries.size(); ++i) {
    for (size_t j = 0; j < keys.size(); ++j) {
      // Without an offset the last query and the last key are the same token, so "how far back" counts from the end.
      const int64_t distance = keys[j].tokensAfter - queries[i].tokensAfter;
      mask[i][j] = queries[i].sequence == keys[j].sequence && distance >= 0;
      if (met == MetKeys::kWindow && distance >= attention.spec.window)
        mask[i][j] = false;
      if (met == MetKeys::kListed && !isInSelectedBlock(attention, static_cast<int64_t>(i), kvHead, keys[j].index))
        mask[i][j] = false;
    }
  }
  return mask;
}

AttentionResult attendByMask(const Attention &a) {
  const std::vector<Token> queries = listQueries(a), keys = listKeys(a);
  std::vector<std::vector<std::vector<bool>>> masks; // by kv head
  for (int64_t kvHead = 0; kvHead < a.spec.kvHeads; ++kvHead)
    masks.push_back(allowedPairs(a, kvHead));
  AttentionResult result;
  for (size_t i = 0; i < queries.size(); ++i) {
    for (const std::vector<std::vector<bool>> &mask : masks)
      result.reads.push_back(std::count(mask[i].begin(), mask[i].end(), true));
    for (int64_t head = 0; head < a.spec.queryHeads; ++head) {
      const int64_t kvHead = head * a.spec.kvHeads / a.spec.queryHeads;
      const std::vector<bool> &allowed = masks[kvHead][i];
      std::vector<long double> scores(keys.size(), -std::numeric_limits<long double>::infinity());
      for (size_t j = 0; j < keys.size(); ++j) {
        if (!allowed[j])
          continue;
        scores[j] = 0;
        for (int64_t c = 0; c < a.spec.qkDim; ++c)
          scores[j] += static_cast<long double>(a.q.at(queries[i].batch, queries[i].time, head, c)) *
                       a.k.at(keys[j].batch, keys[j].time, kvHead, c);
        scores[j] *= a.spec.scale != 0 ? a.spec.scale : std::pow(static_cast<double>(a.spec.qkDim), -0.5);
      }
      long double sum = 0;
      for (long double score : scores)
        sum += std::exp(score);
      for (int64_t c = 0; c < a.spec.vDim; ++c) {
        long double value = 0;
        for (size_t j = 0; j < keys.size(); ++j)
          if (allowed[j])
            value += std::exp(scores[j]) / sum * a.v.at(keys[j].batch, keys[j].time, kvHead, c);
        result.out.push_back(static_cast<double>(value));
      }
      result.lse.push_back(static_cast<double>(std::log(sum)));
    }
  }
  return result;
}

} // namespace nsa::reference
