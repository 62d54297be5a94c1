// Result: the value of an operation that may fail in ordinary ways (peer gone, file missing, bad input).
// A bug is a DISTTRAIN_CHECK instead; a decision ("not yet") is a value with its reason. See "Errors" in
// ARCHITECTURE.md.
#pragma once

#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace disttrain {

// The kind of a failure, numbered as the exit codes of <sysexits.h>. A program that ends because of it exits with this
// code.
enum class ErrorCode : int {
  kFailed = 1,         // a job that ran and failed
  kUsage = 64,         // wrong command line
  kData = 65,          // corrupt or mislabelled data
  kNoInput = 66,       // a file is missing
  kUnavailable = 69,   // port in use, peer or chief unreachable
  kSoftware = 70,      // a bug of ours
  kTemporary = 75,     // try again: queue full
  kNoPermission = 77,  // file or port not allowed
  kConfig = 78,        // cluster or job file wrong or unfit, wrong cluster, wrong version
};

// Says what was being done, to what, what was found, what was expected and what to do, in one or more full lines.
struct Error {
  ErrorCode code = ErrorCode::kSoftware;
  std::string message;
};

namespace internal {
template <typename T>
inline constexpr bool kIsTruthful = false;  // true for bool-like types: a test of their Result reads like theirs
template <>
inline constexpr bool kIsTruthful<bool> = true;
template <typename T>
inline constexpr bool kIsTruthful<std::optional<T>> = true;
}  // namespace internal

// `if (result)` asks whether there is a value. For a Result<bool> or a Result<std::optional<T>> it doesn't compile,
// because it reads as a test of the value. Write result.has_value() and *result there.
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
