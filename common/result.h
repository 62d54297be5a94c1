// Result: the value of an operation, or an error if the operation fails in an ordinary way (a peer is gone, a file is
// missing, the input is bad). A bug fails a DISTTRAIN_CHECK instead. A decision, such as "not yet", isn't an error but
// a value with its reason. See "Errors" in ARCHITECTURE.md.
#pragma once

#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace disttrain {

// The kind of an error. The numbers are the exit codes of <sysexits.h>, and a program that ends because of an error
// exits with its number.
enum class ErrorCode : int {
  kFailed = 1,         // a job that ran and failed
  kUsage = 64,         // wrong command line
  kData = 65,          // corrupt or mislabelled data
  kNoInput = 66,       // a file is missing
  kUnavailable = 69,   // a port is in use, or a peer or the chief is unreachable
  kSoftware = 70,      // a bug in this program
  kTemporary = 75,     // try again: queue full
  kNoPermission = 77,  // file or port not allowed
  kConfig = 78,        // a bad cluster or job file, another cluster, or another version
};

// The message says what failed, on what, what was found, what was expected and what to do, in one or more whole lines.
struct Error {
  ErrorCode code = ErrorCode::kSoftware;
  std::string message;
};

namespace internal {
template <typename T>
inline constexpr bool kIsTruthful = false;  // true for types whose values are tested as `if (value)`
template <>
inline constexpr bool kIsTruthful<bool> = true;
template <typename T>
inline constexpr bool kIsTruthful<std::optional<T>> = true;
}  // namespace internal

// `if (result)` asks whether the operation succeeded. It doesn't compile for a Result<bool> or a
// Result<std::optional<T>>, because readers would take it for a test of the value. Write result.has_value() and *result
// for these.
//
// Without this, `if (is_own_address(a))` looked right, but it was true for every address that could be resolved. A lint
// check would have to know the types of all conditions. A function with a name, such as ok(), would have to be called
// in a thousand places that are correct.
template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;

  explicit operator bool() const requires(!internal::kIsTruthful<T>) { return this->has_value(); }
  explicit operator bool() const requires(internal::kIsTruthful<T>) = delete;
};

using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace disttrain
