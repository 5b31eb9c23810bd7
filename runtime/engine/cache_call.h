// Checks the part of a call of `decode` that is the cache: how many tokens each sequence has, where its pages are, and
// how much room its pools have.
// Ownership: borrows everything.
// Thread-safety: belongs to one call; checking allocates only on an error.
#pragma once

#include "runtime/base/signature.h"
#include "runtime/engine/bound_tensors.h"
#include "runtime/engine/call.h"

namespace nsa {

class CacheChecker {
public:
  // The tensor whose batch extent all tensors of the cache must have.
  static constexpr TensorName kBatchSource = TensorName::kCacheSeqlens;
  static bool isOfCache(Lead lead) { return lead == Lead::kCache || lead == Lead::kCacheBlocks || lead == Lead::kRing; }

  CacheChecker(const CallRules &rules, const BoundTensors &tensors, Call &call)
      : spec(rules.spec), maxima(rules.maxima), tensors(tensors), call(call) {}

  // CACHE_SEQLENS and BLOCK_TABLE are no operands of a kernel, so they are checked here: whether they are bound, and
  // which names the call may have because of them.
  Status checkPresence() const;
  uint64_t names() const;

  // Checks dtype, rank, shape and strides of the lengths and the table. In a packed call sizes.batch was set from
  // cu_seqlens_q before; otherwise this sets it.
  Status checkLengths();
  // Checks the leading dimensions of a tensor of the cache: [batch, room], or [pages, rows of a page]. Must be called
  // in the order of the operands, because the first pool sets what the others must have.
  Status checkLead(const TensorName &name, Lead lead);
  // Adds the table to a view whose rows lie in pages.
  void addTable(Lead lead, ViewSlots &slots) const;
  // Where one pool serves two branches, they must have the same tensor of new tokens. Must be called after all operands
  // were checked.
  Status checkSharedPools() const;

  // The tokens that the cache has room for in each sequence.
  int64_t capacity() const { return room; }

private:
  bool isPaged() const { return spec.pageSize > 0; }

  const Spec &spec;
  const Maxima &maxima;
  const BoundTensors &tensors;
  Call &call;
  const TensorName *roomSource = nullptr,
                   *pageSource = nullptr; // the tensor that first said how much room or how many pages there are
  int64_t room = 0;
};

} // namespace nsa
