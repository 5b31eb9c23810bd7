// A batch of sequences on their way through the layer: their cache, a plan for chunks of prompts and one for steps.
// Ownership: must not outlive device and engine. Thread-safety: one thread at a time. Throws nsa::Error for what the
// library refuses, std::runtime_error for the rest.
#pragma once

#include "history.h"
#include "kv_cache.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace example {

class Decoder {
public:
  // `room`: tokens that each sequence may come to have; `mostNew`: those of all in one call.
  Decoder(Device &device, nsa::Engine &engine, const std::vector<std::int64_t> &room, std::int64_t mostNew,
          std::int32_t pageSize);

  // The next counts[s] tokens of each history, of prompts.
  void prefill(std::vector<History> &histories, const std::vector<std::int64_t> &counts);
  // The next token of each. The first call makes what the later ones replay.
  void step(std::vector<History> &histories);

private:
  void feed(const std::vector<History> &histories, const std::vector<std::int64_t> &counts);
  // Puts a plan's work for `tokens` new tokens on the stream.
  void enqueue(const nsa::Plan &plan, std::int64_t tokens) const;
  void collect(nsa::Plan &plan, std::vector<History> &histories, const std::vector<std::int64_t> &counts);

  Device &device;
  KvCache cache;
  TokenBuffers tokens;
  nsa::Plan chunkPlan, stepPlan;
  Buffer workspace; // calls follow each other, so one serves both plans
  std::function<void()> replayStep;
};

} // namespace example
