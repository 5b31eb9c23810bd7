#include "runtime/base/device_status.h"

namespace nsa {

namespace {

constexpr const char *kSkippedSequenceHint =
    "that sequence was skipped: its output was not written, and its cache stands as it stood";

} // namespace

Status deviceStatus(int32_t code, int32_t place) {
  if (code == static_cast<int32_t>(DeviceStatusCode::kOk))
    return Status::ok(); // before any text: every run on the CPU asks
  ErrorInfo info;
  info.code = ErrorCode::kDeviceError;
  info.value = "sequence " + std::to_string(place);
  switch (static_cast<DeviceStatusCode>(code)) {
  case DeviceStatusCode::kOk:
    break; // answered above
  case DeviceStatusCode::kBadCuSeqlensQ:
    info.field = "cu_seqlens_q";
    info.rule = "must begin with 0, must not decrease and must stay within [0, total_q]";
    break;
  case DeviceStatusCode::kBadCuSeqlensK:
    info.field = "cu_seqlens_k";
    info.rule = "must begin with 0, must not decrease and must stay within [0, total_k]";
    break;
  case DeviceStatusCode::kMoreQueriesThanKeys:
    info.field = "cu_seqlens_q";
    info.rule = "a sequence must not have more queries than keys";
    break;
  case DeviceStatusCode::kSeqlenQOverMaximum:
    info.field = "max_seqlen_q";
    info.rule = "the sequence has more queries than the plan was made for";
    info.hint = "make the plan with a larger max_seqlen_q";
    break;
  case DeviceStatusCode::kSeqlenKOverMaximum:
    info.field = "max_seqlen_k";
    info.rule = "the sequence has more keys than the plan was made for";
    info.hint = "make the plan with a larger max_seqlen_k";
    break;
  case DeviceStatusCode::kMalformedList:
    info.field = "block_list";
    info.rule = kBlockListRule;
    info.hint = kMalformedListHint;
    break;
  case DeviceStatusCode::kBadCacheSeqlens:
    info.field = "cache_seqlens";
    info.rule = "must be from 0 to the cache's room";
    info.hint = kSkippedSequenceHint;
    break;
  case DeviceStatusCode::kCacheFull:
    info.field = "cache_seqlens";
    info.rule = "the new tokens have no room in the cache";
    info.hint = kSkippedSequenceHint;
    break;
  case DeviceStatusCode::kBadPage:
    info.field = "block_table";
    info.rule = "a page of the new tokens must be a page of the pools";
    info.hint = kSkippedSequenceHint;
    break;
  case DeviceStatusCode::kBlocksOverTensor:
    info.field = "k_comp";
    info.rule = "must hold the compressed blocks of all sequences";
    info.hint = "make k_comp and v_comp larger; that sequence was skipped, its output was not written";
    break;
  default:
    info.field = "status";
    info.value = std::to_string(code) + " at " + std::to_string(place);
    info.rule = "the kernel reported a code that this library does not know";
    info.hint = "the kernel was stored by a newer version";
    break;
  }
  if (info.hint.empty())
    info.hint = "that sequence was skipped, its output was not written";
  return Status(std::move(info));
}

} // namespace nsa
