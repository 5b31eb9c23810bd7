#include "runtime/base/status.h"

namespace nsa {

std::string_view errorCodeName(ErrorCode code) {
  switch (code) {
  case ErrorCode::kOk:
    return "ok";
  case ErrorCode::kInvalidArgument:
    return "invalid argument";
  case ErrorCode::kCacheMiss:
    return "cache miss";
  case ErrorCode::kUnavailable:
    return "unavailable";
  case ErrorCode::kUnsupported:
    return "unsupported";
  case ErrorCode::kCompileFailed:
    return "compile failed";
  case ErrorCode::kDeviceError:
    return "device error";
  case ErrorCode::kIoError:
    return "io error";
  case ErrorCode::kCapturing:
    return "capturing";
  case ErrorCode::kOutOfMemory:
    return "out of memory";
  case ErrorCode::kInternal:
    return "internal error";
  }
  return "unknown error"; // a number from a newer library
}

std::string ErrorInfo::sentence() const {
  if (!message.empty())
    return message;
  std::string text = field + (value.empty() ? "" : " = " + value);
  if (!rule.empty())
    text += (text.empty() ? "" : ": ") + rule;
  return text;
}

std::string ErrorInfo::toString() const {
  std::string text(errorCodeName(code));
  if (const std::string what = sentence(); !what.empty())
    text += ": " + what;
  if (!hint.empty())
    text += " (hint: " + hint + ")";
  return text;
}

Status::Status(const Status &other) : info(other.info ? std::make_unique<ErrorInfo>(*other.info) : nullptr) {}

Status &Status::operator=(const Status &other) {
  if (this != &other)
    info = other.info ? std::make_unique<ErrorInfo>(*other.info) : nullptr;
  return *this;
}

Status Status::invalid(std::string field, std::string value, std::string rule, std::string hint) {
  return Status(ErrorInfo{.code = ErrorCode::kInvalidArgument,
                          .field = std::move(field),
                          .value = std::move(value),
                          .rule = std::move(rule),
                          .hint = std::move(hint)});
}

Status Status::error(ErrorCode code, std::string message, std::string hint) {
  assert(code != ErrorCode::kOk && "an error needs a code");
  return Status(ErrorInfo{.code = code, .message = std::move(message), .hint = std::move(hint)});
}

} // namespace nsa
