// Some types may be tested with `if`, and others must not be. This file compiles only if that holds.
#include "common/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace disttrain {
namespace {

template <typename T>
inline constexpr bool kMayBeTested = std::is_constructible_v<bool, T>;  // `if (value)`, `!value`, `value && other`

// A caller once wrote `if (is_own_address(...))`. This condition asked only whether there was a result, so every
// address that could be resolved counted as the host's own.
static_assert(!kMayBeTested<Result<bool>> && !kMayBeTested<const Result<bool>&>);
static_assert(!kMayBeTested<Result<std::optional<int>>>);
static_assert(!kMayBeTested<Result<std::optional<std::string>>>);
static_assert(kMayBeTested<Status> && kMayBeTested<Result<int>> && kMayBeTested<Result<std::unique_ptr<int>>>);

TEST(ResultTest, TestAsksWhetherThereIsAValue) {
  EXPECT_TRUE(Result<int>(0));
  EXPECT_FALSE(Result<int>(fail(ErrorCode::kUsage, "no number")));
  EXPECT_TRUE(Status());
  EXPECT_FALSE(Status(fail(ErrorCode::kUsage, "nothing")));
}

TEST(ResultTest, TruthIsAskedForByName) {
  const Result<bool> no = false;
  EXPECT_TRUE(no.has_value());
  EXPECT_FALSE(*no);
  EXPECT_FALSE(Result<bool>(fail(ErrorCode::kUsage, "nobody knows")).has_value());
  EXPECT_FALSE(Result<bool>(fail(ErrorCode::kUsage, "nobody knows")).value_or(false));
}

}  // namespace
}  // namespace disttrain
