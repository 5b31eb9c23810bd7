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
  ErrorInfo info;
  info.code = ErrorCode::kInvalidArgument;
  info.field = std::move(field);
  info.value = std::move(value);
  info.rule = std::move(rule);
  info.hint = std::move(hint);
  return Status(std::move(info));
}

Status Status::error(ErrorCode code, std::string message, std::string hint) {
  assert(code != ErrorCode::kOk && "an error needs a code");
  ErrorInfo info;
  info.code = code;
  info.message = std::move(message);
  info.hint = std::move(hint);
  return Status(std::move(info));
}

} // namespace nsa
