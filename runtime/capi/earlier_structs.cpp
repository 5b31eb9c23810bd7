#include "runtime/capi/earlier_structs.h"

#include "runtime/capi/errors.h"
#include "runtime/capi/sized_structs.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace nsa::capi {

static_assert(sizeof(nsa_engine_options) > kOptionsBytesOf02);

namespace {

Status checkNumber(const char *field, int value, int last, const char *rule) {
  return value >= 0 && value <= last ? Status::ok() : Status::invalid(field, std::to_string(value), rule);
}

Status copyFields(const nsa_engine_options &host, nsa_engine_options &storage) {
  const auto *from = reinterpret_cast<const unsigned char *>(&host);
  auto *to = reinterpret_cast<unsigned char *>(&storage);
  if (!isOf01(host)) {
    memcpy(to, from, host.size);
    return Status::ok();
  }
  constexpr size_t kMoved = offsetof(nsa_engine_options, record_path), kBy = sizeof storage.record_path;
  constexpr size_t kReserved = offsetof(nsa_engine_options, tuned) - kBy; // int64_t reserved[4] of 0.1
  memcpy(to, from, kMoved);
  memcpy(to + kMoved + kBy, from + kMoved, std::min(host.size, kReserved) - kMoved);
  for (size_t at = kReserved; at < host.size; ++at)
    if (from[at] != 0)
      return reservedError("options", from[at]);
  return Status::ok();
}

} // namespace

Status copyEarlier(const nsa_engine_options &host, nsa_engine_options &storage) {
  NSA_RETURN_IF_ERROR(copyFields(host, storage));
  NSA_RETURN_IF_ERROR(checkNumber("miss_policy_set", storage.unused, 1, "must be 0 or 1"));
  const int policy = numberOf(storage.miss_policy);
  NSA_RETURN_IF_ERROR(checkNumber("miss_policy", policy, NSA_MISS_BACKGROUND, "must be a value of nsa_miss_policy"));
  if (policy == 0 && storage.unused == 1)
    storage.miss_policy = NSA_MISS_DEFAULT;
  storage.unused = 0;
  const int level = numberOf(storage.log_level);
  storage.log_level = NSA_LOG_UNSET;
  if (storage.log) {
    NSA_RETURN_IF_ERROR(checkNumber("log_level", level, NSA_LOG_OFF - 1, "must be a value of nsa_log_level"));
    storage.log_level = static_cast<nsa_log_level>(level + 1);
  }
  return Status::ok();
}

} // namespace nsa::capi
