#include "runtime/capi/sized_structs.h"

#include <algorithm>

namespace nsa::capi {

static_assert(sizeof(nsa_engine_options) >= kOptionsBytesOf02);

Status reservedError(std::string_view name, int64_t value) {
  return Status::invalid(std::string(name) + ".reserved", std::to_string(value), "must be 0");
}

Status checkStructSize(const void *value, size_t size, size_t least, size_t known, std::string_view type,
                       std::string_view name) {
  const auto broken = [&](const std::string &rule, const char *hint) {
    return Status::invalid(std::string(name) + ".size", std::to_string(size), rule, hint);
  };
  if (size < least || size > kMostStructBytes)
    return broken("must be sizeof(" + std::string(type) + "), at least " + std::to_string(least) + " and at most " +
                      std::to_string(kMostStructBytes),
                  "initialise it with NSA_INIT");
  const auto *bytes = static_cast<const unsigned char *>(value);
  if (size > known && std::any_of(bytes + known, bytes + size, [](unsigned char byte) { return byte != 0; }))
    return broken("a field of " + std::string(type) + " behind the " + std::to_string(known) +
                      " bytes that this library knows must be 0",
                  "use a library at least as new as nsa.h");
  return Status::ok();
}

Status copyOptions(const nsa_engine_options &host, nsa_engine_options &storage) {
  const auto *from = reinterpret_cast<const unsigned char *>(&host);
  auto *to = reinterpret_cast<unsigned char *>(&storage);
  if (!isOptionsOf01(host)) {
    memcpy(to, from, std::min(host.size, sizeof storage));
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

} // namespace nsa::capi
