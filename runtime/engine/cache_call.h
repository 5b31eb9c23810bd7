// The part of a call of `decode` that is the cache: how many tokens each sequence has, where its pages are, and how
// much room its pools have. Ownership: borrows everything. Thread-safety: belongs to one call; checking allocates only
// on an error.
#pragma once

#include "runtime/base/signature.h"
#include "runtime/engine/bound_tensors.h"
#include "runtime/engine/call.h"

namespace nsa {

class CacheChecker {
public:
  // Every batch extent of the cache is as this tensor's.
  static constexpr TensorName kBatchSource = TensorName::kCacheSeqlens;
  static bool isOfCache(Lead lead) { return lead == Lead::kCache || lead == Lead::kCacheBlocks || lead == Lead::kRing; }

  CacheChecker(const CallRules &rules, const BoundTensors &tensors, Call &call)
      : spec(rules.spec), maxima(rules.maxima), tensors(tensors), call(call) {}

  // Lengths and table, which are no operands: whether they are there, and which names they have.
  Status checkPresence() const;
  uint64_t names() const;

  // Their form. Of a packed call, sizes.batch is already that of cu_seqlens_q; else it is set.
  Status checkLengths();
  // The leading dimensions of a tensor of the cache, [batch, room] or [pages, rows of a page]. In the operands' order:
  // the first pool says what the others must have.
  Status checkLead(const TensorName &name, Lead lead);
  // Adds the table to a view whose rows lie in pages.
  void addTable(Lead lead, ViewSlots &slots) const;
  // Where one pool serves two branches, so must one tensor of new tokens. After all operands.
  Status checkSharedPools() const;

  // Tokens of one sequence.
  int64_t capacity() const { return room; }

private:
  bool isPaged() const { return spec.pageSize > 0; }

  const Spec &spec;
  const Maxima &maxima;
  const BoundTensors &tensors;
  Call &call;
  const TensorName *roomSource = nullptr, *pageSource = nullptr; // whose tensor said so first
  int64_t room = 0;
};

} // namespace nsa
