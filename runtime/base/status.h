// Functions of the library return errors as values of the types Status and Result<T>. A Status is one pointer wide and
// null on success, so returning success costs nothing. An error names the field at fault, its value, the broken rule
// and what to do about the error.
// Thread-safety: Status and Result are values, so distinct objects may be used from distinct threads.
#pragma once

#include <cassert>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace nsa {

// The numbers of ErrorCode are part of the C ABI (nsa_status in nsa/nsa.h).
enum class ErrorCode : int {
  kOk = 0,
  kInvalidArgument = 1, // a spec, tensor, option or file breaks a rule
  kCacheMiss = 2,       // policy `fail`, and no stored kernel serves the spec
  kUnavailable = 3,     // no driver, no NVRTC, no compiler library, driver too old
  kUnsupported = 4,     // legal, but nothing here can run it (e.g. shared memory too small)
  kCompileFailed = 5,   // a template, NVRTC or LLVM refused
  kDeviceError = 6,     // the driver returned an error, or the device reported a bad input
  kIoError = 7,         // a file could not be read or written
  kCapturing = 8,       // the stream captures and the plan is not in memory
  kOutOfMemory = 9,
  kInternal = 10,
};

// Returns the stable lower-case name of an error code, such as "invalid argument".
std::string_view errorCodeName(ErrorCode code);

// The description of an error. The texts `field`, `value` and `rule` are empty if the error does not concern a field.
struct ErrorInfo {
  ErrorCode code = ErrorCode::kInternal;
  std::string field{};
  std::string value{};
  std::string rule{};
  std::string message{}; // free text; empty: `sentence` composes it of the three above
  std::string hint{};    // what the reader can do

  // Returns field, value and rule as one sentence: "window = 0: must be at least 1".
  std::string sentence() const;
  // Returns the whole error in one line: "invalid argument: window = 0: must be at least 1 (hint: ...)".
  std::string toString() const;
};

class [[nodiscard]] Status {
public:
  Status() = default;
  explicit Status(ErrorInfo info) : info(std::make_unique<ErrorInfo>(std::move(info))) {}
  Status(Status &&) = default;
  Status &operator=(Status &&) = default;
  Status(const Status &other);
  Status &operator=(const Status &other);

  static Status ok() { return Status(); }
  // Makes the error of an invalid argument: `field` has `value`, which breaks `rule`.
  static Status invalid(std::string field, std::string value, std::string rule, std::string hint = "");
  static Status error(ErrorCode code, std::string message, std::string hint = "");

  bool isOk() const { return !info; }
  ErrorCode code() const { return info ? info->code : ErrorCode::kOk; }
  const ErrorInfo &error() const {
    assert(info && "asked a fine status for its error");
    return *info;
  }
  std::string toString() const { return info ? info->toString() : "ok"; }

private:
  std::unique_ptr<ErrorInfo> info;
};

// A Result holds either a value, or the error that explains why there is no value.
template <typename T> class [[nodiscard]] Result {
public:
  // The constructors of Result are implicit, so that a function returns a value or an error as it is.
  // NOLINTBEGIN(google-explicit-constructor)
  Result(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : state(std::in_place_index<1>, std::move(status)) {
    assert(!std::get<1>(state).isOk() && "a Result without a value needs an error");
  }
  // NOLINTEND(google-explicit-constructor)

  bool isOk() const { return state.index() == 0; }
  explicit operator bool() const { return isOk(); }
  T &operator*() { return std::get<0>(state); }
  const T &operator*() const { return std::get<0>(state); }
  T *operator->() { return &std::get<0>(state); }
  const T *operator->() const { return &std::get<0>(state); }
  Status status() const { return isOk() ? Status::ok() : std::get<1>(state); }

private:
  std::variant<T, Status> state;
};

// Evaluates an expression of type Status, and returns from the enclosing function if the Status is an error.
#define NSA_RETURN_IF_ERROR(expression)                                                                                \
  do {                                                                                                                 \
    if (::nsa::Status nsaStatus = (expression); !nsaStatus.isOk())                                                     \
      return nsaStatus;                                                                                                \
  } while (false)

} // namespace nsa

// Evaluates an expression of type Result, and returns from the enclosing function if the Result is an error. Otherwise
// assigns the value to `target`, which is a variable or the declaration of one.
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration must not have parentheses
#define NSA_ASSIGN_OR_RETURN(target, ...) NSA_ASSIGN_VALUE(NSA_NAME_OF_LINE(__LINE__), target, (__VA_ARGS__))
#define NSA_ASSIGN_VALUE(result, target, expression)                                                                   \
  auto result = expression;                                                                                            \
  if (!result)                                                                                                         \
    return result.status();                                                                                            \
  target = std::move(*result)
#define NSA_NAME_OF_LINE(line) NSA_JOINED_NAME(nsaResult, line)
#define NSA_JOINED_NAME(name, line) name##line
// NOLINTEND(bugprone-macro-parentheses)
