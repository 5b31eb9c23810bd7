#include "kv_cache.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace example {

KvCache::KvCache(Device &device, const std::vector<std::int64_t> &room, std::int32_t pageSize)
    : device(&device), pageSize(pageSize), roomTokens(*std::max_element(room.begin(), room.end())), pages(room.size()) {
  const auto batch = static_cast<std::int64_t>(room.size());
  std::int64_t entries = batch, rows = roomTokens, compressed = (roomTokens + kCmpStride - 1) / kCmpStride;
  if (pageSize > 0) {
    // As many pages as all sequences need together; each sequence takes from them what it needs.
    entries = 0;
    for (std::int64_t tokens : room)
      entries += (tokens + pageSize - 1) / pageSize;
    rows = pageSize;
    compressed = pageSize / kCmpStride;
    pagesPerSequence = (roomTokens + pageSize - 1) / pageSize;
    roomTokens = pagesPerSequence * pageSize;
    freePages.resize(static_cast<std::size_t>(entries));
    std::iota(freePages.begin(), freePages.end(), 0);
  }
  addPool(NSA_K_CACHE, entries, rows);
  addPool(NSA_V_CACHE, entries, rows);
  addPool(NSA_K_COMP_CACHE, entries, compressed);
  addPool(NSA_V_COMP_CACHE, entries, compressed);
  addPool(NSA_K_RAW, batch, kCmpBlock);
  addPool(NSA_V_RAW, batch, kCmpBlock);

  Buffer lengths(device, room.size() * sizeof(std::int32_t));
  device.fill(lengths.data(), 0, lengths.size()); // no tokens yet; the library counts on from here
  views.push_back({NSA_CACHE_SEQLENS, {lengths.data(), NSA_INT32, {batch}}});
  buffers.push_back(std::move(lengths));
  if (pageSize > 0) {
    Buffer memory(device, room.size() * static_cast<std::size_t>(pagesPerSequence) * sizeof(std::int32_t));
    device.fill(memory.data(), 0xff, memory.size()); // -1: no page
    table = static_cast<std::int32_t *>(memory.data());
    buffers.push_back(std::move(memory));
    views.push_back({NSA_BLOCK_TABLE, {table, {batch, pagesPerSequence}}});
  }
}

void KvCache::addPool(nsa_name name, std::int64_t entries, std::int64_t rows) {
  Buffer memory(*device, static_cast<std::size_t>(entries * rows) * kKeyRow * sizeof(std::uint16_t));
  // Caches need no clearing: what no token has written is never read. NaN would show it.
  device->fill(memory.data(), 0xff, memory.size());
  views.push_back({name, {memory.data(), NSA_BF16, {entries, rows, kKvHeads, kDim}}});
  buffers.push_back(std::move(memory));
}

void KvCache::reserve(std::size_t sequence, std::int64_t tokens) {
  if (pageSize == 0)
    return;
  std::vector<std::int32_t> &own = pages[sequence];
  const std::size_t before = own.size();
  while (static_cast<std::int64_t>(own.size()) * pageSize < tokens) {
    if (freePages.empty())
      throw std::runtime_error("the cache has no free page left");
    own.push_back(freePages.back());
    freePages.pop_back();
  }
  const std::size_t row = sequence * static_cast<std::size_t>(pagesPerSequence);
  device->upload(table + row + before, own.data() + before, (own.size() - before) * sizeof(std::int32_t));
}

} // namespace example
