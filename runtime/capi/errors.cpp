#include "runtime/capi/errors.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace nsa::capi {

namespace {

// The texts that nsa_error_get_info gives to the host.
ErrorInfo &lastOfThread() {
  thread_local ErrorInfo last{.code = ErrorCode::kOk};
  return last;
}

void keep(const ErrorInfo &info) {
  ErrorInfo &last = lastOfThread();
  try {
    ErrorInfo copy = info;
    copy.message = info.sentence();
    last = std::move(copy);
  } catch (const std::bad_alloc &) {
    last = {.code = info.code};
  }
}

} // namespace

const ErrorInfo &lastFailure() { return lastOfThread(); }

nsa_status report(const Status &status, nsa_error *error) noexcept {
  const auto code = static_cast<nsa_status>(status.code());
  if (error) {
    error->code = code;
    // Only the first byte of each text is cleared, and not all of the struct: a launch clears its error too.
    for (char *text : {error->field, error->value, error->rule, error->message, error->hint})
      *text = '\0';
  }
  if (status.isOk())
    return code;
  keep(status.error());
  if (error) {
    const ErrorInfo &info = lastOfThread();
    copyText(error->field, info.field);
    copyText(error->value, info.value);
    copyText(error->rule, info.rule);
    copyText(error->hint, info.hint);
    copyText(error->message, info.message);
  }
  return code;
}

void copyText(char *target, size_t capacity, std::string_view text) {
  constexpr std::string_view kCut = "...";
  size_t length = text.size();
  std::string_view end;
  if (length >= capacity) {
    end = kCut;
    length = capacity - 1 - kCut.size();
    // A cut must not leave half a UTF-8 character: step back over continuation bytes.
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80)
      --length;
  }
  // An empty view may hold a null pointer, which memcpy must not be given.
  target = std::copy_n(text.data(), length, target);
  target = std::copy(end.begin(), end.end(), target);
  *target = '\0';
}

Status nullError(std::string_view name) { return Status::invalid(std::string(name), "null", "must not be null"); }

} // namespace nsa::capi
