#include "runtime/capi/sized_structs.h"

#include <algorithm>

namespace nsa::capi {

Status reservedError(std::string_view name, int64_t value) {
  return Status::invalid(std::string(name) + ".reserved", std::to_string(value), "must be 0");
}

Status checkSize(size_t size, size_t least, std::string_view type, const std::string &field) {
  if (size >= least && size <= kMostStructBytes)
    return Status::ok();
  return Status::invalid(field, std::to_string(size),
                         "must be sizeof(" + std::string(type) + "), at least " + std::to_string(least) +
                             " and at most " + std::to_string(kMostStructBytes),
                         "initialise it with NSA_INIT");
}

Status checkStructSize(const void *value, size_t size, size_t least, size_t known, std::string_view type,
                       std::string_view name) {
  const std::string field = std::string(name) + ".size";
  NSA_RETURN_IF_ERROR(checkSize(size, least, type, field));
  const auto *bytes = static_cast<const unsigned char *>(value);
  if (size > known && std::any_of(bytes + known, bytes + size, [](unsigned char byte) { return byte != 0; }))
    return Status::invalid(field, std::to_string(size),
                           "a field of " + std::string(type) + " behind the " + std::to_string(known) +
                               " bytes that this library knows must be 0",
                           "use a library at least as new as nsa.h");
  return Status::ok();
}

} // namespace nsa::capi
