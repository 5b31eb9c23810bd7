#include "runtime/engine/call/host_lengths.h"

#include "runtime/base/sequence_fields.h"
#include "runtime/base/signature.h"

#include <algorithm>
#include <string>

namespace nsa {

Status checkHostOffsets(const char *name, const ViewSlots &view, int64_t batch, int64_t total, const char *totalName) {
  auto broken = [&](int64_t i, std::string rule) {
    return Status::invalid(std::string(name) + "[" + std::to_string(i) + "]", std::to_string(lengthAt(view, i)),
                           std::move(rule));
  };
  if (lengthAt(view, 0) != 0)
    return broken(0, "must be 0");
  for (int64_t i = 1; i <= batch; ++i) {
    if (lengthAt(view, i) < lengthAt(view, i - 1))
      return broken(i, "must not be less than the one before, " + std::to_string(lengthAt(view, i - 1)));
    if (lengthAt(view, i) > total)
      return broken(i, std::string("must be at most ") + totalName + " = " + std::to_string(total));
  }
  return Status::ok();
}

namespace {

// A table's page is looked at where a new token comes to lie.
Status checkHostCache(const CallRules &rules, const Call &call) {
  const ViewSlots &offsets = call[TensorName::kCuSeqlensQ], &table = call[TensorName::kBlockTable];
  if (offsets.data)
    NSA_RETURN_IF_ERROR(checkHostOffsets("cu_seqlens_q", offsets, call.sizes.batch,
                                         static_cast<int64_t>(call.scalars[static_cast<size_t>(Scalar::kTotalQ)]),
                                         "the rows of q"));
  const auto capacity = static_cast<int64_t>(call.scalars[static_cast<size_t>(Scalar::kCapacity)]);
  for (int64_t i = 0; i < call.sizes.batch; ++i) {
    const int64_t length = lengthAt(call[TensorName::kCacheSeqlens], i);
    const int64_t added = offsets.data ? lengthAt(offsets, i + 1) - lengthAt(offsets, i) : call.timeQ;
    auto broken = [&](std::string rule, std::string hint = "") {
      return Status::invalid("cache_seqlens[" + std::to_string(i) + "]", std::to_string(length), std::move(rule),
                             std::move(hint));
    };
    if (length < 0 || length > capacity)
      return broken("must be from 0 to the cache's room of " + std::to_string(capacity) + " tokens");
    if (added > rules.maxima.seqlenQ)
      return Status::invalid("seqlen_q of sequence " + std::to_string(i), std::to_string(added),
                             "must be at most the plan's max_seqlen_q = " + std::to_string(rules.maxima.seqlenQ));
    if (added > capacity - length)
      return broken("the cache has room for " + std::to_string(capacity) + " tokens, and " + std::to_string(added) +
                    " more come");
    if (length + added > rules.maxima.seqlenK)
      return broken("with " + std::to_string(added) +
                        " new tokens must be at most the plan's max_seqlen_k = " + std::to_string(rules.maxima.seqlenK),
                    "make a plan with larger maxima");
    const int64_t page = rules.spec.pageSize;
    for (int64_t place = 0; page && added > 0 && place * page < length + added; ++place) {
      const int32_t number = static_cast<const int32_t *>(table.data)[i * table.strides[0] + place];
      if (number < 0 || number >= call.pages)
        return Status::invalid(
            "block_table[" + std::to_string(i) + ", " + std::to_string(place) + "]", std::to_string(number),
            "must be one of the pools' " + std::to_string(call.pages) + " pages: the sequence lies there");
    }
  }
  return Status::ok();
}

// An offset is absent where the keys of every sequence begin at position 0.
Status checkHostKeyOffsets(const Spec &spec, const Call &call) {
  const ViewSlots &offsets = call[TensorName::kKOffset];
  const bool countsBlocks = definitionOf(spec.op).keys == MetKeys::kBlocks;
  for (int64_t i = 0; offsets.data && i < call.sizes.batch; ++i) {
    const int64_t offset = lengthAt(offsets, i);
    const auto broken = [&](std::string rule) {
      return Status::invalid("k_offset[" + std::to_string(i) + "]", std::to_string(offset), std::move(rule));
    };
    if (offset < -kMostKOffset || offset > kMostKOffset)
      return broken("must be from -2^30 to 2^30");
    if (countsBlocks && offset % spec.cmpStride != 0)
      return broken("must be a multiple of cmp_stride = " + std::to_string(spec.cmpStride) +
                    ": keys are compressed blocks, and the offset counts tokens");
  }
  return Status::ok();
}

// The first tensor of the operator that has a row for each compressed block.
TensorName rowsOfBlocks(Operator op) {
  const auto found = std::ranges::find_if(
      operandsOf(op), [](const Operand &operand) { return tensorRule(operand.name).lead == Lead::kBlocks; });
  return found == operandsOf(op).end() ? TensorName::kKComp : found->name;
}

} // namespace

Status checkHostLengths(const CallRules &rules, const Call &call) {
  const auto &[spec, maxima, scalars] = rules;
  if (definitionOf(spec.op).hasCache)
    return checkHostCache(rules, call);
  NSA_RETURN_IF_ERROR(checkHostKeyOffsets(spec, call));
  if (spec.layout != Layout::kPacked || !readsLengths(spec.op))
    return Status::ok();
  const ViewSlots &q = call[TensorName::kCuSeqlensQ];
  const ViewSlots &k = call[TensorName::kCuSeqlensK];
  auto total = [&](Scalar name) { return static_cast<int64_t>(call.scalars[static_cast<size_t>(name)]); };
  NSA_RETURN_IF_ERROR(checkHostOffsets("cu_seqlens_q", q, call.sizes.batch, total(Scalar::kTotalQ), "the rows of q"));
  const bool hasKeys = std::ranges::any_of(
      operandsOf(spec.op), [](const Operand &operand) { return tensorRule(operand.name).lead == Lead::kKeys; });
  NSA_RETURN_IF_ERROR(checkHostOffsets("cu_seqlens_k", k, call.sizes.batch, total(Scalar::kTotalK),
                                       hasKeys ? "the rows of k" : "the keys for which block_index has room"));
  int64_t blocks = 0;
  for (int64_t i = 0; i < call.sizes.batch; ++i) {
    int64_t seqlenQ = lengthAt(q, i + 1) - lengthAt(q, i);
    int64_t seqlenK = lengthAt(k, i + 1) - lengthAt(k, i);
    auto broken = [&](const char *name, int64_t value, std::string rule) {
      return Status::invalid(std::string(name) + " of sequence " + std::to_string(i), std::to_string(value),
                             std::move(rule));
    };
    if (seqlenQ > seqlenK)
      return broken("seqlen_q", seqlenQ, "must be at most its seqlen_k = " + std::to_string(seqlenK));
    if (seqlenQ > maxima.seqlenQ)
      return broken("seqlen_q", seqlenQ, "must be at most the plan's max_seqlen_q = " + std::to_string(maxima.seqlenQ));
    if (seqlenK > maxima.seqlenK)
      return broken("seqlen_k", seqlenK, "must be at most the plan's max_seqlen_k = " + std::to_string(maxima.seqlenK));
    blocks += spec.compressedBlocks(seqlenK);
  }
  const int64_t rows = total(Scalar::kTotalC);
  if (blocks > rows)
    return Status::invalid(std::string(tensorName(rowsOfBlocks(spec.op))) + ".shape", std::to_string(rows) + " rows",
                           "must hold the " + std::to_string(blocks) + " compressed blocks of all sequences");
  return Status::ok();
}

} // namespace nsa
