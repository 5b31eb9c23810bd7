// The cache of a batch of sequences: keys and values, one pool for the selected branch and the window; their compressed
// blocks; the newest rows, which become compressed blocks; and the lengths. With a page size the pools are pages, which
// belong to sequences as these grow. Ownership: must not outlive its device. Thread-safety: one thread at a time.
#pragma once

#include "device.h"
#include "geometry.h"

#include <cstdint>
#include <vector>

namespace example {

class KvCache {
public:
  // `room`: tokens that each sequence may come to have. `pageSize`: tokens of a page, 0 for none.
  KvCache(Device &device, const std::vector<std::int64_t> &room, std::int32_t pageSize);

  // Before a call: sees to it that sequence s has pages for `tokens` tokens. The table stays where it is, so a captured
  // call sees what is new.
  void reserve(std::size_t sequence, std::int64_t tokens);

  // Tokens of a sequence that the pools are made for.
  std::int64_t roomOfOne() const { return roomTokens; }
  const std::vector<NamedTensor> &tensors() const { return views; }

private:
  void addPool(nsa_name name, std::int64_t entries, std::int64_t rows);

  Device *device;
  std::int64_t pageSize, roomTokens = 0, pagesPerSequence = 0;
  std::vector<std::int32_t> freePages;
  std::vector<std::vector<std::int32_t>> pages; // of each sequence
  std::int32_t *table = nullptr;                // row s: the pages of sequence s
  std::vector<Buffer> buffers;
  std::vector<NamedTensor> views;
};

} // namespace example
