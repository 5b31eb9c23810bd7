#include "decoder.h"

#include <algorithm>
#include <numeric>

namespace example {

Decoder::Decoder(Device &device, nsa::Engine &engine, const std::vector<std::int64_t> &room, std::int64_t mostNew,
                 std::int32_t pageSize)
    : device(device), cache(device, room, pageSize), tokens(device, mostNew),
      // The same operator with other maxima: with few new tokens of a sequence (8 at most) programs share its keys.
      // Changed since 8a804fc, as docs/embedding.md says: max_seqlen_q was `mostNew`, which is above max_seqlen_k.
      chunkPlan(engine.plan(layerSpec(NSA_OP_DECODE, pageSize),
                            {kBatch, std::min(mostNew, cache.roomOfOne()), cache.roomOfOne(), mostNew},
                            device.stream())),
      stepPlan(
          engine.plan(layerSpec(NSA_OP_DECODE, pageSize), {kBatch, 1, cache.roomOfOne(), kBatch}, device.stream())),
      workspace(device, std::max(chunkPlan.workspaceSize(), stepPlan.workspaceSize())) {}

void Decoder::prefill(std::vector<History> &histories, const std::vector<std::int64_t> &counts) {
  feed(histories, counts);
  enqueue(chunkPlan, std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  collect(chunkPlan, histories, counts);
}

void Decoder::step(std::vector<History> &histories) {
  const std::vector<std::int64_t> ones(histories.size(), 1);
  feed(histories, ones);
  // Lengths and pages are in device memory and every tensor stays where it is: one capture serves all steps.
  if (!replayStep)
    replayStep = device.repeatable([this] { enqueue(stepPlan, kBatch); });
  replayStep();
  collect(stepPlan, histories, ones);
}

void Decoder::feed(const std::vector<History> &histories, const std::vector<std::int64_t> &counts) {
  std::vector<std::int64_t> firsts;
  for (std::size_t s = 0; s < histories.size(); ++s) {
    firsts.push_back(histories[s].done());
    cache.reserve(s, firsts[s] + counts[s]);
  }
  tokens.upload(histories, firsts, counts);
}

void Decoder::enqueue(const nsa::Plan &plan, std::int64_t count) const {
  std::vector<NamedTensor> tensors = tokens.tensors(count);
  tensors.insert(tensors.end(), cache.tensors().begin(), cache.tensors().end());
  const std::vector<nsa::Binding> bindings = bindingsOf(tensors);
  plan.run(bindings.data(), bindings.size(), workspace.data(), workspace.size(), device.stream());
}

void Decoder::collect(nsa::Plan &plan, std::vector<History> &histories, const std::vector<std::int64_t> &counts) {
  // What kernels found wrong in device memory: a sequence without room, a page that is none.
  plan.checkStatus(device.stream());
  tokens.download(histories, counts);
}

} // namespace example
