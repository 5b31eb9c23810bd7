#include "runtime/engine/call/host_lists.h"

#include "runtime/base/device_status.h"
#include "runtime/engine/call/host_lengths.h"

#include <string>
#include <vector>

namespace nsa {

namespace {

// A sequence of the call, as the host reads it.
struct HostSequence {
  int64_t number, entry, queryBegin, queries, keyBegin, keys;
};

std::vector<HostSequence> sequencesOf(const CallRules &rules, const Call &call) {
  std::vector<HostSequence> sequences;
  const bool packed = rules.spec.layout == Layout::kPacked;
  const ViewSlots &q = call[TensorName::kCuSeqlensQ], &k = call[TensorName::kCuSeqlensK];
  for (int64_t i = 0; i < call.sizes.batch; ++i)
    if (packed)
      sequences.push_back({i, 0, lengthAt(q, i), lengthAt(q, i + 1) - lengthAt(q, i), lengthAt(k, i),
                           lengthAt(k, i + 1) - lengthAt(k, i)});
    else
      sequences.push_back({i, i, 0, static_cast<int64_t>(call.scalars[static_cast<size_t>(Scalar::kSeqlenQ)]), 0,
                           static_cast<int64_t>(call.scalars[static_cast<size_t>(Scalar::kSeqlenK)])});
  return sequences;
}

// A place in a tensor, whose first coordinate the packed layout does not have.
std::string placeOf(const char *tensor, Layout layout, int64_t entry, const std::string &rest) {
  return std::string(tensor) + "[" + (layout == Layout::kPacked ? "" : std::to_string(entry) + ", ") + rest + "]";
}

// Lists by (entry, time, kv head, slot), as kernels address them.
class HostLists {
public:
  HostLists(const CallRules &rules, const Call &call) : spec(rules.spec), lists(call[TensorName::kBlockList]) {}

  int64_t block(int64_t entry, int64_t time, int64_t head, int64_t slot) const {
    return static_cast<const int32_t *>(lists.data)[entry * lists.strides[0] + time * lists.strides[1] +
                                                    head * lists.strides[2] + slot * lists.strides[3]];
  }

  // The first slot of a query's list that breaks the rule, or sel_count.
  int64_t brokenSlot(const HostSequence &own, int64_t query, int64_t head) const {
    int64_t before = -1;
    bool ended = false;
    for (int64_t slot = 0; slot < spec.selCount; ++slot) {
      const int64_t listed = block(own.entry, own.queryBegin + query, head, slot);
      if (listed == -1) {
        ended = true;
        continue;
      }
      if (ended || listed <= before || listed > (own.keys - 1) / spec.selBlock)
        return slot;
      before = listed;
    }
    return spec.selCount;
  }

  // For each block of a sequence the queries that attend it.
  std::vector<std::vector<int64_t>> inverse(const HostSequence &own, int64_t head) const {
    std::vector<std::vector<int64_t>> queries(static_cast<size_t>((own.keys + spec.selBlock - 1) / spec.selBlock));
    for (int64_t query = 0; query < own.queries; ++query) {
      if (brokenSlot(own, query, head) < spec.selCount)
        continue;
      for (int64_t slot = 0; slot < spec.selCount; ++slot) {
        const int64_t listed = block(own.entry, own.queryBegin + query, head, slot);
        if (listed >= 0 && listed * spec.selBlock <= own.keys - own.queries + query)
          queries[static_cast<size_t>(listed)].push_back(query);
      }
    }
    return queries;
  }

private:
  const Spec &spec;
  const ViewSlots &lists;
};

} // namespace

Status findMalformedList(const CallRules &rules, const Call &call) {
  const HostLists lists(rules, call);
  for (const HostSequence &own : sequencesOf(rules, call))
    for (int64_t query = 0; query < own.queries; ++query)
      for (int64_t head = 0; head < rules.spec.kvHeads; ++head)
        if (const int64_t slot = lists.brokenSlot(own, query, head); slot < rules.spec.selCount) {
          const int64_t time = own.queryBegin + query;
          return Status(ErrorInfo{
              .code = ErrorCode::kDeviceError,
              .field = placeOf("block_list", rules.spec.layout, own.entry,
                               std::to_string(time) + ", " + std::to_string(head) + ", " + std::to_string(slot)),
              .value = std::to_string(lists.block(own.entry, time, head, slot)),
              .rule = kBlockListRule,
              .hint = kMalformedListHint});
        }
  return Status::ok();
}

Status findWrongIndex(const CallRules &rules, const Call &call) {
  const Spec &spec = rules.spec;
  const HostLists lists(rules, call);
  const ViewSlots &index = call[TensorName::kBlockIndex];
  for (const HostSequence &own : sequencesOf(rules, call))
    for (int64_t head = 0; head < spec.kvHeads && own.keys > 0; ++head) {
      // The offsets of all blocks, the end of the last one, and then the queries of each block.
      std::vector<int64_t> expected = {0}, queries;
      for (const std::vector<int64_t> &block : lists.inverse(own, head)) {
        queries.insert(queries.end(), block.begin(), block.end());
        expected.push_back(static_cast<int64_t>(queries.size()));
      }
      expected.insert(expected.end(), queries.begin(), queries.end());
      const int64_t begin = spec.layout == Layout::kPacked
                                ? own.keyBegin / spec.selBlock + 2 * own.number + own.queryBegin * spec.selCount
                                : 0;
      for (int64_t i = 0; i < static_cast<int64_t>(expected.size()); ++i) {
        const int64_t value = static_cast<const int32_t *>(
            index.data)[own.entry * index.strides[0] + head * index.strides[1] + (begin + i) * index.strides[2]];
        if (value != expected[static_cast<size_t>(i)])
          return Status(ErrorInfo{.code = ErrorCode::kDeviceError,
                                  .field = placeOf("block_index", spec.layout, own.entry,
                                                   std::to_string(head) + ", " + std::to_string(begin + i)),
                                  .value = std::to_string(value),
                                  .rule = "must be " + std::to_string(expected[static_cast<size_t>(i)]) +
                                          " in the inverse of block_list, as the operator invert makes it",
                                  .hint = kWrongIndexHint});
      }
    }
  return Status::ok();
}

} // namespace nsa
