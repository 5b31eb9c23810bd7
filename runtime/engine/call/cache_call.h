// Checks the tensors of the cache in a call of `decode`: the number of tokens of each sequence, the table of its pages,
// and the extents of the tensors that hold keys and values (pools).
// Ownership: a CacheChecker borrows the objects that its constructor receives.
// Thread-safety: a CacheChecker belongs to one call; checking allocates only on an error.
#pragma once

#include "runtime/base/signature.h"
#include "runtime/engine/call/bound_tensors.h"
#include "runtime/engine/call/call.h"

namespace nsa {

class CacheChecker {
public:
  // All tensors of the cache must have the same batch extent as this tensor, CACHE_SEQLENS.
  static constexpr TensorName kBatchSource = TensorName::kCacheSeqlens;
  static bool isOfCache(Lead lead) { return lead == Lead::kCache || lead == Lead::kCacheBlocks || lead == Lead::kRing; }

  CacheChecker(const CallRules &rules, const BoundTensors &tensors, Call &call)
      : spec(rules.spec), maxima(rules.maxima), tensors(tensors), call(call) {}

  // Checks whether CACHE_SEQLENS and BLOCK_TABLE are bound where they must be. CACHE_SEQLENS and BLOCK_TABLE are not in
  // the list of operands (operandsOf), so the check of the operands does not include them. `addNames` adds
  // CACHE_SEQLENS to `names`, and also BLOCK_TABLE if the cache has pages.
  Status checkPresence() const;
  void addNames(TensorNames &names) const;

  // Checks dtype, rank, shape and strides of CACHE_SEQLENS and BLOCK_TABLE. In the dense layout, checkLengths sets
  // sizes.batch to the length of CACHE_SEQLENS. In the packed layout, sizes.batch is already set from cu_seqlens_q, and
  // the length of CACHE_SEQLENS must be equal to it.
  Status checkLengths();
  // Checks the leading dimensions of a tensor of the cache: [batch, rows of a sequence], or [pages, rows of a page].
  // `checkLead` must be called in the order of the operands, because the later tensors must have as many rows or pages
  // as the first tensor.
  Status checkLead(const TensorName &name, Lead lead);
  // Adds the block table to a view whose rows lie in pages.
  void addTable(Lead lead, ViewSlots &slots) const;
  // Checks the rule that two branches whose keys are in the same tensor of the cache also have the same tensor of new
  // keys. `checkSharedPools` must be called after all operands were checked.
  Status checkSharedPools() const;

  // Returns how many tokens of each sequence the cache can hold.
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
