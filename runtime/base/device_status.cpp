#include "runtime/base/device_status.h"

#include <algorithm>
#include <iterator>

namespace nsa {

namespace {

constexpr const char *kSkippedHint = "that sequence was skipped, its output was not written";
constexpr const char *kSkippedSequenceHint =
    "that sequence was skipped: its output was not written, and its cache stands as it stood";

struct CodeRule {
  DeviceStatusCode code;
  std::string_view name; // as templates say it: status_bad_page
  const char *field, *rule, *hint;
};
using enum DeviceStatusCode;
constexpr CodeRule kRules[] = {
    {kBadCuSeqlensQ, "bad_cu_seqlens_q", "cu_seqlens_q",
     "must begin with 0, must not decrease and must stay within [0, total_q]", kSkippedHint},
    {kBadCuSeqlensK, "bad_cu_seqlens_k", "cu_seqlens_k",
     "must begin with 0, must not decrease and must stay within [0, total_k]", kSkippedHint},
    {kMoreQueriesThanKeys, "more_queries_than_keys", "cu_seqlens_q", "a sequence must not have more queries than keys",
     kSkippedHint},
    {kSeqlenQOverMaximum, "seqlen_q_over_maximum", "max_seqlen_q",
     "the sequence has more queries than the plan was made for", "make the plan with a larger max_seqlen_q"},
    {kSeqlenKOverMaximum, "seqlen_k_over_maximum", "max_seqlen_k",
     "the sequence has more keys than the plan was made for", "make the plan with a larger max_seqlen_k"},
    {kMalformedList, "malformed_list", "block_list", kBlockListRule, kMalformedListHint},
    {kBlocksOverTensor, "blocks_over_tensor", "k_comp", "must hold the compressed blocks of all sequences",
     "make k_comp and v_comp, or in compress_bwd their gradients, larger; that sequence was skipped, its output was "
     "not "
     "written"},
    {kBadCacheSeqlens, "bad_cache_seqlens", "cache_seqlens", "must be from 0 to the cache's room",
     kSkippedSequenceHint},
    {kCacheFull, "cache_full", "cache_seqlens", "the new tokens have no room in the cache", kSkippedSequenceHint},
    {kBadPage, "bad_page", "block_table", "every page of a sequence must be a page of the pools", kSkippedSequenceHint},
    {kBadKOffset, "bad_k_offset", "k_offset", "must be from -2^30 to 2^30, and for cmp a multiple of cmp_stride",
     kSkippedHint},
    {kWrongIndex, "wrong_index", "block_index", "must be the inverse of block_list, as the operator invert makes it",
     kWrongIndexHint},
};

const CodeRule *ruleOf(int32_t code) {
  const auto *rule = std::find_if(std::begin(kRules), std::end(kRules),
                                  [&](const CodeRule &entry) { return static_cast<int32_t>(entry.code) == code; });
  return rule == std::end(kRules) ? nullptr : rule;
}

} // namespace

bool findDeviceStatusCode(std::string_view name, int64_t &code) {
  const auto *found =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const CodeRule &rule) { return rule.name == name; });
  if (found == std::end(kRules))
    return false;
  code = static_cast<int64_t>(found->code);
  return true;
}

std::string_view deviceStatusName(int32_t code) {
  const CodeRule *rule = ruleOf(code);
  return rule ? rule->name : std::string_view();
}

Status deviceStatus(DeviceReport report) {
  if (report.code == static_cast<int32_t>(kOk))
    return Status::ok(); // before any text: every run on the CPU asks
  ErrorInfo info;
  info.code = ErrorCode::kDeviceError;
  if (const CodeRule *rule = ruleOf(report.code)) {
    info.field = rule->field;
    info.value = "sequence " + std::to_string(report.place);
    info.rule = rule->rule;
    info.hint = rule->hint;
  } else {
    info.field = "status";
    info.value = std::to_string(report.code) + " at " + std::to_string(report.place);
    info.rule = "the kernel reported a code that this library does not know";
    info.hint = "the kernel was stored by a newer version";
  }
  return Status(std::move(info));
}

} // namespace nsa
