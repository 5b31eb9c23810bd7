// Decoding on a device through the C ABI: a cache, and steps that feed it the tokens of a history which the host knows
// whole. What the steps gave is collected as if one forward pass had given it, so both are checked in one way.
// Ownership: must not outlive its accelerator and its history. Thread-safety: one thread at a time.
#pragma once

#include "tools/support/operator_job.h"

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace nsa::tools {

struct CacheShape {
  int64_t room = 0;               // tokens of a sequence; with pages, rounded up to whole ones
  int64_t mostNew = 1;            // tokens of a sequence in one step
  int32_t pageSize = 0;           // tokens; 0: no pages
  bool isShared = false;          // one pool for sel and win, where the history has one k and v for both
  Layout layout = Layout::kDense; // of the new tokens; packed ones may be of unequal number
  uint64_t seed = 0;              // of the order of pages
};

class DecodeRun {
public:
  // The cache of as many sequences as the history has, empty and full of NaN, entries of the block table behind its
  // pages too large to be any.
  static Result<DecodeRun> open(Accelerator &accelerator, const OperatorInputs &history, const CacheShape &shape,
                                const std::set<TensorName> &wanted);

  // What to plan for.
  const Spec &spec() const { return decodeSpec; }
  Maxima maxima() const;
  // Workspace for the plan, not larger, and poisoned.
  Status allocateWorkspace(const nsa_plan *plan);

  // As if so many tokens of each sequence were in the cache, all of it drawn from a seed: for measurements of long
  // sequences. The history begins behind them.
  Status pretend(int64_t tokens, uint64_t seed);
  // The same cache again at another length, at most the longest that it had.
  Status rewind(int64_t tokens);
  // The next tokens of each sequence: puts them where the plan's bindings point, and counts them as fed.
  Status feed(const std::vector<int64_t> &counts);
  // Runs the plan over what was fed.
  Status enqueue(const nsa_plan *plan) const;
  Result<std::vector<nsa_part_time>> runTimed(const nsa_plan *plan) const;
  // Takes the outputs of what was fed last into `collected`. An error when bytes around a tensor or the workspace were
  // written.
  Status collect();
  // All three, and what kernels reported.
  Status step(nsa_plan *plan, const std::vector<int64_t> &counts);

  // Outputs of all fed tokens by the history's places, compressed rows from the cache. What was not fed is NaN.
  Result<NamedTensors> collected() const;
  int64_t length(size_t sequence) const { return lengths[sequence]; }
  int64_t room() const { return roomTokens; }
  // For tests that spoil it, and for captured calls.
  nsa_tensor &tensor(TensorName name) { return entries.at(name).tensor; }
  Result<HostTensor> download(TensorName name) const;
  Status checkGuards() const;

private:
  struct Entry {
    Buffer buffer;
    nsa_tensor tensor{};
  };
  Status add(TensorName name, DType dtype, const std::vector<int64_t> &shape, const HostTensor *source);
  Status addCache(const CacheShape &shape);
  Status addBlockTable(int64_t pagesPerSequence, int64_t pages, uint64_t seed);
  std::vector<int64_t> stepShape(TensorName name, int64_t time) const;
  int64_t historyRow(size_t sequence, int64_t token) const;
  int64_t stepRow(size_t sequence) const; // of the sequence's first token that was fed last

  Accelerator *accelerator = nullptr;
  const OperatorInputs *history = nullptr;
  Spec decodeSpec;
  int64_t batch = 0, mostNew = 0, roomTokens = 0, pretended = 0;
  std::vector<int64_t> lengths, fed; // tokens of each sequence: all, and of the last step
  std::vector<int64_t> firstRows;    // of each sequence in the history
  std::vector<int32_t> blockTable;
  int64_t pagesPerSequence = 0;
  std::map<TensorName, Entry> entries;
  std::vector<nsa_binding> bindings;
  std::set<TensorName> inputNames, outputNames;
  NamedTensors outputs;
  Buffer workspace;
};

} // namespace nsa::tools
