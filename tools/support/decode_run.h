// Decodes on a device through the C ABI. A DecodeRun owns a KV cache on the device. The input of a DecodeRun is a
// history: the tokens of all sequences, in host memory. Each step runs the operator decode on the next tokens of the
// history, which adds them to the cache. A DecodeRun collects the outputs of all steps in tensors that have the same
// shapes as the outputs of one forward pass over the history. The same code can therefore check the outputs of decoding
// and the outputs of a forward pass.
// Ownership: a DecodeRun must not outlive its accelerator and its history.
// Thread-safety: one thread at a time may use a DecodeRun.
#pragma once

#include "tools/support/operator_job.h"

#include <cstdint>
#include <set>
#include <vector>

namespace nsa::tools {

struct CacheShape {
  int64_t room = 0;               // tokens of a sequence; with pages, rounded up to whole pages
  int64_t mostNew = 1;            // tokens of a sequence in one step
  int32_t pageSize = 0;           // tokens; 0: no pages
  bool isShared = false;          // sel and win share a pool, where the history has one k and v for both
  Layout layout = Layout::kDense; // of the new tokens; in the packed layout their numbers may differ
  uint64_t seed = 0;              // for the order of pages
};

class DecodeRun : public DeviceCall {
public:
  // Allocates a cache for the sequences of the history. A new cache has length 0, and its memory is filled with NaN. In
  // each row of the block table, the entries after the sequence's last page are numbers that are too large for any
  // page.
  static Result<DecodeRun> open(Accelerator &accelerator, const OperatorInputs &history, const CacheShape &shape,
                                const std::set<TensorName> &wanted);

  // The spec and the maxima with which the caller makes the plan.
  const Spec &spec() const { return decodeSpec; }
  Maxima maxima() const;

  // Fills the cache with `tokens` random tokens for each sequence, for measurements of long sequences. The next step
  // then adds the first token of the history to the cache, after the random tokens.
  Status pretend(int64_t tokens, uint64_t seed);
  // Sets the length of every sequence in the cache back to `tokens`, which must be at most the greatest length that the
  // cache has had.
  Status rewind(int64_t tokens);
  // Copies the next `counts[i]` tokens of each sequence i from the history into the input tensors of the next step,
  // which `enqueue` or `runTimed` then runs.
  Status feed(const std::vector<int64_t> &counts);
  // Copies the outputs of the last step to the host and adds them to the collected outputs. Fails when a kernel has
  // written bytes outside of a tensor or the workspace.
  Status collect();
  // Calls `feed`, `enqueue` and `collect`. `step` fails when one of these calls fails, or when a kernel of the run has
  // reported an error in the plan's status word.
  Status step(nsa_plan *plan, const std::vector<int64_t> &counts);

  // Returns the outputs of all steps, each in the row that its token has in the history, and the compressed rows of the
  // cache. In the outputs, the rows of tokens that no step has processed have all bits set, which is NaN in the
  // floating-point types.
  Result<NamedTensors> collected() const;
  int64_t length(size_t sequence) const { return lengths[sequence]; }
  int64_t room() const { return roomTokens; }

private:
  Status addCache(const CacheShape &shape);
  Status addBlockTable(int64_t pagesPerSequence, int64_t pages, uint64_t seed);
  std::vector<int64_t> stepShape(TensorName name, int64_t time) const;
  int64_t historyRow(size_t sequence, int64_t token) const;
  int64_t stepRow(size_t sequence) const; // the row of the sequence's first token in the last step

  const OperatorInputs *history = nullptr;
  Spec decodeSpec;
  int64_t batch = 0, mostNew = 0, roomTokens = 0, pretended = 0;
  std::vector<int64_t> lengths, fed; // tokens of each sequence: in all, and in the last step
  std::vector<int64_t> firstRows;    // the first row of each sequence in the history
  std::vector<int32_t> blockTable;
  int64_t pagesPerSequence = 0;
  std::set<TensorName> inputNames;
  NamedTensors outputs;
};

} // namespace nsa::tools
