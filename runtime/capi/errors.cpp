#include "runtime/capi/errors.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace nsa::capi {

namespace {

template <size_t N> void copyText(char (&target)[N], const std::string &text, size_t most = N) {
  size_t length = std::min(text.size(), most - 1);
  // A cut must not leave half a UTF-8 character: step back over continuation bytes.
  if (length < text.size())
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80)
      --length;
  memcpy(target, text.data(), length);
  target[length] = '\0';
}

} // namespace

nsa_status report(const Status &status, nsa_error *error, size_t hintBytes) {
  auto code = static_cast<nsa_status>(status.code());
  if (!error)
    return code;
  error->code = code;
  if (status.isOk()) {
    // Only the first byte of each text is cleared, and not all of the struct: a launch clears its error too.
    for (char *text : {error->field, error->value, error->rule, error->message, error->hint})
      *text = '\0';
    return code;
  }
  const ErrorInfo &info = status.error();
  copyText(error->field, info.field);
  copyText(error->value, info.value);
  copyText(error->rule, info.rule);
  copyText(error->hint, info.hint, hintBytes);
  copyText(error->message, info.sentence());
  return code;
}

Status requirePointer(const void *pointer, std::string_view name) {
  return pointer ? Status::ok() : Status::invalid(std::string(name), "null", "must not be null");
}

} // namespace nsa::capi
