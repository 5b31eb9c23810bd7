#include "history.h"

#include <numeric>

namespace example {
namespace {

template <typename T>
std::vector<T> gather(const std::vector<History> &histories, std::vector<T> History::*rows, std::size_t row,
                      const std::vector<std::int64_t> &firsts, const std::vector<std::int64_t> &counts) {
  std::vector<T> packed;
  for (std::size_t s = 0; s < histories.size(); ++s) {
    const auto begin = (histories[s].*rows).begin() + firsts[s] * static_cast<std::int64_t>(row);
    packed.insert(packed.end(), begin, begin + counts[s] * static_cast<std::int64_t>(row));
  }
  return packed;
}

template <typename T>
void scatter(const std::vector<T> &packed, std::vector<History> &histories, std::vector<T> History::*rows,
             std::size_t row, const std::vector<std::int64_t> &counts) {
  auto begin = packed.begin();
  for (std::size_t s = 0; s < histories.size(); ++s) {
    const auto end = begin + counts[s] * static_cast<std::int64_t>(row);
    (histories[s].*rows).insert((histories[s].*rows).end(), begin, end);
    begin = end;
  }
}

} // namespace

TokenBuffers::TokenBuffers(Device &device, std::int64_t mostTokens) : device(&device) {
  const auto tokens = static_cast<std::size_t>(mostTokens);
  q = Buffer(device, tokens * kQueryRow * sizeof(std::uint16_t));
  k = Buffer(device, tokens * kKeyRow * sizeof(std::uint16_t));
  v = Buffer(device, tokens * kKeyRow * sizeof(std::uint16_t));
  gates = Buffer(device, tokens * kGateRow * sizeof(std::uint16_t));
  out = Buffer(device, tokens * kQueryRow * sizeof(std::uint16_t));
  reads = Buffer(device, tokens * kKvHeads * sizeof(std::int32_t));
  lists = Buffer(device, tokens * kListRow * sizeof(std::int32_t));
  offsets = Buffer(device, (kBatch + 1) * sizeof(std::int32_t));
}

void TokenBuffers::upload(const std::vector<History> &histories, const std::vector<std::int64_t> &firsts,
                          const std::vector<std::int64_t> &counts) {
  device->upload(q, gather(histories, &History::q, kQueryRow, firsts, counts));
  device->upload(k, gather(histories, &History::k, kKeyRow, firsts, counts));
  device->upload(v, gather(histories, &History::v, kKeyRow, firsts, counts));
  device->upload(gates, gather(histories, &History::gates, kGateRow, firsts, counts));
  std::vector<std::int32_t> ends = {0};
  for (std::int64_t count : counts)
    ends.push_back(ends.back() + static_cast<std::int32_t>(count));
  device->upload(offsets, ends);
  // What is not written shows.
  device->fill(out.data(), 0xff, out.size());
  device->fill(reads.data(), 0xff, reads.size());
  device->fill(lists.data(), 0xff, lists.size());
}

void TokenBuffers::download(std::vector<History> &histories, const std::vector<std::int64_t> &counts) const {
  const auto total = static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  scatter(device->download<std::uint16_t>(out, total * kQueryRow), histories, &History::out, kQueryRow, counts);
  scatter(device->download<std::int32_t>(reads, total * kKvHeads), histories, &History::reads, kKvHeads, counts);
  scatter(device->download<std::int32_t>(lists, total * kListRow), histories, &History::lists, kListRow, counts);
}

std::vector<NamedTensor> TokenBuffers::tensors(std::int64_t tokens) const {
  return {{NSA_Q, {q.data(), NSA_BF16, {tokens, kHeads, kDim}}},
          {NSA_K, {k.data(), NSA_BF16, {tokens, kKvHeads, kDim}}},
          {NSA_V, {v.data(), NSA_BF16, {tokens, kKvHeads, kDim}}},
          {NSA_GATES, {gates.data(), NSA_BF16, {tokens, kHeads, kBranches}}},
          {NSA_OUT, {out.data(), NSA_BF16, {tokens, kHeads, kDim}}},
          {NSA_READS, {reads.data(), NSA_INT32, {tokens, kKvHeads}}},
          {NSA_BLOCK_LIST, {lists.data(), NSA_INT32, {tokens, kKvHeads, kSelCount}}},
          {NSA_CU_SEQLENS_Q, {offsets.data(), NSA_INT32, {kBatch + 1}}}};
}

} // namespace example
