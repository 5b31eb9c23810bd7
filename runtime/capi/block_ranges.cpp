// Block lists to half-open token ranges and back, in host memory (docs/specification.md 2).
#include "runtime/capi/sized_structs.h"
#include "runtime/engine/call/host_lengths.h"

#include <algorithm>
#include <string>
#include <vector>

namespace nsa::capi {

namespace {

struct Range {
  int64_t begin = 0, end = 0; // tokens
};

// The two tensors of a conversion, addressed by (batch, time, kv head, slot).
class RangeCall {
public:
  RangeCall(const nsa_tensor *list, const nsa_tensor *ranges, const nsa_range_options *options)
      : list(list), ranges(ranges), options(options) {}

  // Checks every rule except the rules of the elements.
  Status check() {
    NSA_RETURN_IF_ERROR(readStruct(options, readOptions, "options"));
    if (options->sel_block < 1)
      return Status::invalid("options.sel_block", std::to_string(options->sel_block), "must be at least 1");
    if (options->merge != 0 && options->merge != 1)
      return Status::invalid("options.merge", std::to_string(options->merge), "must be 0 or 1");
    isPacked = options->cu_seqlens_q || options->cu_seqlens_k;
    lead = isPacked ? 1 : 2;
    // One list of lengths stands for both.
    offsetsQ = options->cu_seqlens_q ? options->cu_seqlens_q : options->cu_seqlens_k;
    offsetsK = options->cu_seqlens_k ? options->cu_seqlens_k : options->cu_seqlens_q;
    NSA_RETURN_IF_ERROR(checkTensor(list, readTensors[0], "block_list"));
    NSA_RETURN_IF_ERROR(checkTensor(ranges, readTensors[1], "ranges"));
    if (list->rank != lead + 2)
      return Status::invalid("block_list.rank", std::to_string(list->rank),
                             isPacked ? "must be 3: [total, kv_heads, slots]"
                                      : "must be 4: [batch, time, kv_heads, slots]");
    heads = list->shape[lead];
    hasHeads = ranges->rank == lead + 3;
    const bool mayLeaveHeadsOut = !isPacked && heads == 1;
    if (!hasHeads && !(mayLeaveHeadsOut && ranges->rank == lead + 2))
      return Status::invalid("ranges.rank", std::to_string(ranges->rank),
                             "must be " + std::to_string(lead + 3) + (mayLeaveHeadsOut ? " or 4" : "") +
                                 ": that of block_list and [begin, end]");
    for (int axis = 0; axis < lead + hasHeads; ++axis)
      if (ranges->shape[axis] != list->shape[axis])
        return Status::invalid("ranges.shape[" + std::to_string(axis) + "]", std::to_string(ranges->shape[axis]),
                               "must be " + std::to_string(list->shape[axis]) + ", as of block_list");
    if (ranges->shape[ranges->rank - 1] != 2)
      return Status::invalid("ranges.shape[" + std::to_string(ranges->rank - 1) + "]",
                             std::to_string(ranges->shape[ranges->rank - 1]), "must be 2: begin and end");
    return isPacked ? layOutPacked() : layOutDense();
  }

  // Calls convert(query) once for each query and kv head, until an error.
  struct Query {
    int64_t position; // of its own token
    int64_t batch, time, head;
  };
  template <typename Convert> Status forEachQuery(Convert convert) const {
    if (isEmpty(list) && isEmpty(ranges))
      return Status::ok(); // whatever its other extents
    for (int64_t s = 0; s < sequences; ++s) {
      const Sequence sequence = isPacked ? packedSequence(s) : Sequence{s, 0, list->shape[1], denseKeys};
      for (int64_t i = 0; i < sequence.queries; ++i)
        for (int64_t head = 0; head < heads; ++head)
          NSA_RETURN_IF_ERROR(
              convert(Query{sequence.keys - sequence.queries + i, sequence.batch, sequence.begin + i, head}));
    }
    return Status::ok();
  }

  int64_t listSlots() const { return list->shape[lead + 1]; }
  int64_t rangeSlots() const { return ranges->shape[ranges->rank - 2]; }
  int32_t &block(const Query &query, int64_t slot) const {
    return at(list, leadOffset(list, query) + query.head * list->strides[lead] + slot * list->strides[lead + 1]);
  }
  int32_t &bound(const Query &query, int64_t slot, int64_t which) const {
    const int64_t head = hasHeads ? query.head * ranges->strides[lead] : 0;
    return at(ranges, leadOffset(ranges, query) + head + slot * ranges->strides[ranges->rank - 2] +
                          which * ranges->strides[ranges->rank - 1]);
  }

  // "block_list[0, 5, 1, 2]"
  std::string place(const char *name, const Query &query, int64_t slot) const {
    const std::string time = (isPacked ? "" : std::to_string(query.batch) + ", ") + std::to_string(query.time);
    const bool named = name[0] == 'b' || hasHeads;
    return std::string(name) + "[" + time + (named ? ", " + std::to_string(query.head) : "") + ", " +
           std::to_string(slot) + "]";
  }

  int64_t selBlock() const { return options->sel_block; }
  bool merges() const { return options->merge != 0; }

private:
  struct Sequence {
    int64_t batch, begin, queries, keys;
  };

  static bool isEmpty(const nsa_tensor *tensor) {
    return std::any_of(tensor->shape, tensor->shape + tensor->rank, [](int64_t extent) { return extent == 0; });
  }
  static int32_t &at(const nsa_tensor *tensor, int64_t offset) { return static_cast<int32_t *>(tensor->data)[offset]; }
  int64_t leadOffset(const nsa_tensor *tensor, const Query &query) const {
    return isPacked ? query.time * tensor->strides[0]
                    : query.batch * tensor->strides[0] + query.time * tensor->strides[1];
  }

  static Status checkTensor(const nsa_tensor *&tensor, nsa_tensor &storage, const std::string &name) {
    NSA_RETURN_IF_ERROR(readStruct(tensor, storage, name));
    if (numberOf(tensor->dtype) != NSA_INT32)
      return Status::invalid(name + ".dtype", std::to_string(numberOf(tensor->dtype)), "must be NSA_INT32");
    if (tensor->rank < 1 || tensor->rank > kMaxTensorRank)
      return Status::invalid(name + ".rank", std::to_string(tensor->rank), "must be from 1 to 5");
    if (tensor->accumulate != 0)
      return Status::invalid(name + ".accumulate", std::to_string(tensor->accumulate), "must be 0");
    for (int axis = 0; axis < tensor->rank; ++axis)
      if (tensor->shape[axis] < 0)
        return Status::invalid(name + ".shape[" + std::to_string(axis) + "]", std::to_string(tensor->shape[axis]),
                               "must not be negative");
    return isEmpty(tensor) ? Status::ok() : requirePointer(tensor->data, name + ".data");
  }

  Status layOutDense() {
    const int64_t queries = list->shape[1];
    denseKeys = options->seqlen_k ? options->seqlen_k : queries;
    if (denseKeys < queries)
      return Status::invalid("options.seqlen_k", std::to_string(denseKeys),
                             "must be at least the " + std::to_string(queries) + " queries of a sequence, or 0");
    if (denseKeys > INT32_MAX) // tokens are int32 in ranges
      return Status::invalid(options->seqlen_k ? "options.seqlen_k" : "block_list.shape[1]", std::to_string(denseKeys),
                             "must be below 2^31");
    sequences = list->shape[0];
    return Status::ok();
  }

  static Status checkOffsets(const nsa_tensor *&offsets, nsa_tensor &storage, const char *name, int64_t total,
                             const char *totalName) {
    NSA_RETURN_IF_ERROR(checkTensor(offsets, storage, name));
    if (offsets->rank != 1 || offsets->shape[0] < 1)
      return Status::invalid(std::string(name) + ".shape", std::to_string(offsets->shape[0]),
                             "must have one dimension of batch + 1 elements");
    const ViewSlots view = ViewSlots::make(offsets->data, DType::kI32, {offsets->strides[0]});
    return checkHostOffsets(name, view, offsets->shape[0] - 1, total, totalName);
  }

  Status layOutPacked() {
    if (options->seqlen_k != 0)
      return Status::invalid("options.seqlen_k", std::to_string(options->seqlen_k), "must be 0 beside cu_seqlens");
    NSA_RETURN_IF_ERROR(
        checkOffsets(offsetsQ, readTensors[2], "cu_seqlens_q", list->shape[0], "the rows of block_list"));
    NSA_RETURN_IF_ERROR(checkOffsets(offsetsK, readTensors[3], "cu_seqlens_k", INT32_MAX, "the largest int32"));
    if (offsetsQ->shape[0] != offsetsK->shape[0])
      return Status::invalid("cu_seqlens_k.shape", std::to_string(offsetsK->shape[0]),
                             "must be " + std::to_string(offsetsQ->shape[0]) + ", as of cu_seqlens_q");
    sequences = offsetsQ->shape[0] - 1;
    for (int64_t i = 0; i < sequences; ++i)
      if (const Sequence sequence = packedSequence(i); sequence.queries > sequence.keys)
        return Status::invalid("seqlen_q of sequence " + std::to_string(i), std::to_string(sequence.queries),
                               "must be at most its seqlen_k = " + std::to_string(sequence.keys));
    return Status::ok();
  }

  Sequence packedSequence(int64_t i) const {
    auto offset = [](const nsa_tensor *offsets, int64_t at) -> int64_t {
      return RangeCall::at(offsets, at * offsets->strides[0]);
    };
    return {0, offset(offsetsQ, i), offset(offsetsQ, i + 1) - offset(offsetsQ, i),
            offset(offsetsK, i + 1) - offset(offsetsK, i)};
  }

  const nsa_tensor *list, *ranges, *offsetsQ = nullptr, *offsetsK = nullptr;
  const nsa_range_options *options;
  nsa_tensor readTensors[4]; // of hosts whose structs have other sizes
  nsa_range_options readOptions;
  bool isPacked = false;
  bool hasHeads = true; // the ranges
  int lead = 2;         // dimensions in front of the heads
  int64_t heads = 0;
  int64_t sequences = 0;
  int64_t denseKeys = 0; // of each sequence in the dense layout
};

// The blocks of one list up to the query's own, as ranges of whole blocks or of what the query may see of them.
Status rangesOf(const RangeCall &call, const RangeCall::Query &query, std::vector<Range> &result) {
  result.clear();
  int64_t before = -1;
  bool ended = false;
  for (int64_t slot = 0; slot < call.listSlots(); ++slot) {
    const int64_t block = call.block(query, slot);
    auto broken = [&](std::string rule) {
      return Status::invalid(call.place("block_list", query, slot), std::to_string(block), std::move(rule));
    };
    if (block < -1)
      return broken("must be a block from 0 up, or -1 behind the last one");
    if (block == -1) {
      ended = true;
      continue;
    }
    if (ended)
      return broken("must be -1, as what stands before it");
    if (block <= before)
      return broken("must be above the block before it, " + std::to_string(before));
    before = block;
    const Range range = {block * call.selBlock(), std::min((block + 1) * call.selBlock(), query.position + 1)};
    if (range.begin >= range.end)
      continue; // behind the query
    if (call.merges() && !result.empty() && result.back().end == range.begin)
      result.back().end = range.end;
    else
      result.push_back(range);
  }
  return Status::ok();
}

Status toRanges(const RangeCall &call) {
  std::vector<Range> found;
  return call.forEachQuery([&](const RangeCall::Query &query) -> Status {
    NSA_RETURN_IF_ERROR(rangesOf(call, query, found));
    if (static_cast<int64_t>(found.size()) > call.rangeSlots())
      return Status::invalid("ranges.shape", std::to_string(call.rangeSlots()) + " slots",
                             "must hold the " + std::to_string(found.size()) + " ranges of " +
                                 call.place("block_list", query, 0));
    found.resize(static_cast<size_t>(call.rangeSlots()));
    for (int64_t slot = 0; slot < call.rangeSlots(); ++slot) {
      call.bound(query, slot, 0) = static_cast<int32_t>(found[static_cast<size_t>(slot)].begin);
      call.bound(query, slot, 1) = static_cast<int32_t>(found[static_cast<size_t>(slot)].end);
    }
    return Status::ok();
  });
}

Status tooManyBlocks(const RangeCall &call, const RangeCall::Query &query, int64_t blocks) {
  return Status::invalid("block_list.shape", std::to_string(call.listSlots()) + " slots",
                         "must hold the " + std::to_string(blocks) + " blocks of " + call.place("ranges", query, 0));
}

// The blocks of one query's ranges, ascending and each once.
Status blocksOf(const RangeCall &call, const RangeCall::Query &query, std::vector<int64_t> &result) {
  result.clear();
  const int64_t selBlock = call.selBlock();
  for (int64_t slot = 0; slot < call.rangeSlots(); ++slot) {
    const Range range = {call.bound(query, slot, 0), call.bound(query, slot, 1)};
    if (range.begin == 0 && range.end == 0)
      continue;
    auto broken = [&](std::string rule) {
      return Status::invalid(call.place("ranges", query, slot),
                             "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + "]",
                             std::move(rule));
    };
    if (range.begin < 0 || range.end <= range.begin)
      return broken("must begin at a token from 0 up and end behind it, or be [0, 0]");
    if (range.end > query.position + 1)
      return broken("must end at the query's own token, " + std::to_string(query.position) + ", or before it");
    if (range.begin % selBlock != 0 || (range.end % selBlock != 0 && range.end != query.position + 1))
      return broken("must cover whole blocks of " + std::to_string(selBlock) + " tokens, or end with the query's own");
    const int64_t first = range.begin / selBlock, past = (range.end + selBlock - 1) / selBlock;
    if (past - first > call.listSlots()) // whatever the other ranges hold
      return tooManyBlocks(call, query, past - first);
    for (int64_t block = first; block < past; ++block)
      result.push_back(block);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return Status::ok();
}

Status toBlockList(const RangeCall &call) {
  std::vector<int64_t> found;
  return call.forEachQuery([&](const RangeCall::Query &query) -> Status {
    NSA_RETURN_IF_ERROR(blocksOf(call, query, found));
    if (static_cast<int64_t>(found.size()) > call.listSlots())
      return tooManyBlocks(call, query, static_cast<int64_t>(found.size()));
    found.resize(static_cast<size_t>(call.listSlots()), -1);
    for (int64_t slot = 0; slot < call.listSlots(); ++slot)
      call.block(query, slot) = static_cast<int32_t>(found[static_cast<size_t>(slot)]);
    return Status::ok();
  });
}

} // namespace

} // namespace nsa::capi

nsa_status nsa_ranges_from_block_list(const nsa_tensor *blockList, const nsa_range_options *options,
                                      const nsa_tensor *ranges, nsa_error *error) noexcept {
  using namespace nsa::capi;
  return guarded(error, [&]() -> nsa::Status {
    RangeCall call(blockList, ranges, options);
    NSA_RETURN_IF_ERROR(call.check());
    return toRanges(call);
  });
}

nsa_status nsa_block_list_from_ranges(const nsa_tensor *ranges, const nsa_range_options *options,
                                      const nsa_tensor *blockList, nsa_error *error) noexcept {
  using namespace nsa::capi;
  return guarded(error, [&]() -> nsa::Status {
    RangeCall call(blockList, ranges, options);
    NSA_RETURN_IF_ERROR(call.check());
    return toBlockList(call);
  });
}
