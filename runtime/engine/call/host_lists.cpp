#include "runtime/engine/call/host_lists.h"

#include "runtime/base/device_status.h"
#include "runtime/base/signature.h"

#include <string>

namespace nsa {

namespace {

// Lists by (entry, time, kv head, slot), as kernels address them.
class ListScan {
public:
  ListScan(const CallRules &rules, const Call &call) : spec(rules.spec), lists(call[TensorName::kBlockList]) {}

  // One sequence's lists; its first query stands at `time`.
  Status checkSequence(int64_t entry, int64_t time, int64_t queries, int64_t keys) const {
    for (int64_t query = 0; query < queries; ++query)
      for (int64_t head = 0; head < spec.kvHeads; ++head)
        NSA_RETURN_IF_ERROR(checkList(entry, time + query, head, (keys - 1) / spec.selBlock));
    return Status::ok();
  }

private:
  Status checkList(int64_t entry, int64_t time, int64_t head, int64_t lastBlock) const {
    int64_t before = -1;
    bool ended = false;
    for (int64_t slot = 0; slot < spec.selCount; ++slot) {
      const int64_t block =
          static_cast<const int32_t *>(lists.data)[entry * lists.strides[0] + time * lists.strides[1] +
                                                   head * lists.strides[2] + slot * lists.strides[3]];
      if (block == -1) {
        ended = true;
        continue;
      }
      if (ended || block <= before || block > lastBlock)
        return broken(entry, time, head, slot, block);
      before = block;
    }
    return Status::ok();
  }

  Status broken(int64_t entry, int64_t time, int64_t head, int64_t slot, int64_t block) const {
    return Status(
        ErrorInfo{.code = ErrorCode::kDeviceError,
                  .field = "block_list[" + (spec.layout == Layout::kPacked ? "" : std::to_string(entry) + ", ") +
                           std::to_string(time) + ", " + std::to_string(head) + ", " + std::to_string(slot) + "]",
                  .value = std::to_string(block),
                  .rule = kBlockListRule,
                  .hint = kMalformedListHint});
  }

  const Spec &spec;
  const ViewSlots &lists;
};

} // namespace

Status findMalformedList(const CallRules &rules, const Call &call) {
  const ListScan scan(rules, call);
  if (rules.spec.layout == Layout::kDense) {
    const int64_t queries = call.scalars[static_cast<size_t>(Scalar::kSeqlenQ)];
    const int64_t keys = call.scalars[static_cast<size_t>(Scalar::kSeqlenK)];
    for (int64_t entry = 0; entry < call.sizes.batch; ++entry)
      NSA_RETURN_IF_ERROR(scan.checkSequence(entry, 0, queries, keys));
    return Status::ok();
  }
  auto offset = [&](TensorName name, int64_t i) {
    return int64_t{static_cast<const int32_t *>(call[name].data)[i * call[name].strides[0]]};
  };
  for (int64_t i = 0; i < call.sizes.batch; ++i) {
    const int64_t begin = offset(TensorName::kCuSeqlensQ, i), queries = offset(TensorName::kCuSeqlensQ, i + 1) - begin;
    const int64_t keys = offset(TensorName::kCuSeqlensK, i + 1) - offset(TensorName::kCuSeqlensK, i);
    NSA_RETURN_IF_ERROR(scan.checkSequence(0, begin, queries, keys));
  }
  return Status::ok();
}

} // namespace nsa
