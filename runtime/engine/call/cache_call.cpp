#include "runtime/engine/call/cache_call.h"

#include <algorithm>
#include <limits>
#include <string>

namespace nsa {

namespace {

constexpr TensorName kLengths = TensorName::kCacheSeqlens, kTable = TensorName::kBlockTable;

} // namespace

Status CacheChecker::checkPresence() const {
  if (!tensors.find(kLengths))
    return BoundTensors::broken(kLengths, "", "absent", "must be bound");
  if (isPaged() && !tensors.find(kTable))
    return BoundTensors::broken(kTable, "", "absent", "must be bound where the spec has a page_size");
  return Status::ok();
}

void CacheChecker::addNames(TensorNames &names) const {
  names.add(kLengths);
  if (isPaged())
    names.add(kTable);
}

Status CacheChecker::checkLengths() {
  NSA_RETURN_IF_ERROR(tensors.check(kLengths, DType::kI32, 1));
  NSA_RETURN_IF_ERROR(tensors.checkDisjoint(kLengths));
  const int64_t batch = tensors[kLengths].shape[0];
  if (spec.layout == Layout::kPacked)
    NSA_RETURN_IF_ERROR(tensors.checkExtent(kLengths, 0, call.sizes.batch, "the sequences of cu_seqlens_q"));
  call.sizes.batch = batch;
  call.set(kLengths, tensors[kLengths], {tensors[kLengths].strideOf(0)});
  if (!isPaged())
    return Status::ok();
  NSA_RETURN_IF_ERROR(tensors.check(kTable, DType::kI32, 2));
  NSA_RETURN_IF_ERROR(tensors.checkExtent(kTable, 0, batch, "batch of ", tensorName(kBatchSource)));
  NSA_RETURN_IF_ERROR(tensors.checkContiguous(kTable, 1));
  // No sequence is longer than a number of 32 bits says, however many pages it might have.
  room = std::min<int64_t>(tensors[kTable].shape[1] * spec.pageSize, std::numeric_limits<int32_t>::max());
  call.set(kTable, tensors[kTable], {tensors[kTable].strideOf(0), 1});
  return Status::ok();
}

Status CacheChecker::checkLead(const TensorName &name, Lead lead) {
  const int64_t rowTokens = lead == Lead::kCacheBlocks ? spec.cmpStride : 1;
  if (lead == Lead::kRing || !isPaged())
    NSA_RETURN_IF_ERROR(tensors.checkExtent(name, 0, call.sizes.batch, "batch of ", tensorName(kBatchSource)));
  if (lead == Lead::kRing)
    return tensors.checkExtent(name, 1, spec.cmpBlock, "cmp_block");
  const Tensor &tensor = tensors[name];
  if (isPaged()) {
    NSA_RETURN_IF_ERROR(tensors.checkExtent(name, 1, spec.pageSize / rowTokens,
                                            rowTokens == 1 ? "page_size" : "page_size / cmp_stride"));
    if (pageSource)
      return tensors.checkExtent(name, 0, call.pages, "as ", tensorName(*pageSource));
    pageSource = &name;
    call.pages = tensor.shape[0];
    return Status::ok();
  }
  if (lead == Lead::kCacheBlocks) {
    if (!roomSource) // of the compressed branch alone
      room = maxima.seqlenK;
    const int64_t least = spec.compressedBlocks(room);
    if (tensor.shape[1] >= least)
      return Status::ok();
    return BoundTensors::broken(name, ".shape", shapeText(tensor),
                                "dimension 1 must be at least " + std::to_string(least) +
                                    ", the compressed blocks of " + std::to_string(room) + " tokens");
  }
  if (roomSource)
    return tensors.checkExtent(name, 1, room, "as ", tensorName(*roomSource));
  roomSource = &name;
  room = tensor.shape[1];
  return Status::ok();
}

void CacheChecker::addTable(Lead lead, ViewSlots &slots) const {
  if (!isPaged() || lead == Lead::kRing)
    return;
  const ViewSlots &table = call[kTable];
  slots.table = static_cast<const int32_t *>(table.data);
  slots.tableStride = table.strides[0];
}

Status CacheChecker::checkSharedPools() const {
  using T = TensorName;
  for (const auto &[sel, win, selCache, winCache] : {std::array{T::kKSel, T::kKWin, T::kKSelCache, T::kKWinCache},
                                                     std::array{T::kVSel, T::kVWin, T::kVSelCache, T::kVWinCache}}) {
    if (call[selCache].data && call[selCache].data == call[winCache].data && call[sel].data != call[win].data)
      return BoundTensors::broken(win, ".data", "another tensor than " + std::string(tensorName(sel)),
                                  "where one cache serves both branches, the new tokens must be one tensor too");
  }
  return Status::ok();
}

} // namespace nsa
