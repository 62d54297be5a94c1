#include "common/program/code_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace disttrain::program {
namespace {

using testing::HasSubstr;
using testing::Optional;

std::string times(std::size_t count, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string function(const std::string& expression) {
  return "def forward(self, x: Tensor) -> Tensor:\n  y = 1\n  return " + expression + "\n";
}

TEST(CodeBounds, DeepBracketsAreFoundWithTheirLine) {
  for (const auto& [open, close] : {std::pair("(", ")"), std::pair("[", "]"), std::pair("torch.neg(", ")")}) {
    EXPECT_EQ(find_deep_code(function(times(200, open) + "x" + times(200, close))), std::nullopt) << open;
    EXPECT_THAT(find_deep_code(function(times(20'000, open) + "x" + times(20'000, close))),
                Optional(HasSubstr("line 3 has more than 200 brackets inside of each other")));
  }
}

TEST(CodeBounds, LongExpressionsAreFound) {
  for (const char* part : {"not ", "-", "~", "x + ", "x if y else ", "x ** ", "x and ", "x."}) {
    EXPECT_EQ(find_deep_code(function(times(300, part) + "x")), std::nullopt) << part;
    EXPECT_THAT(find_deep_code(function(times(20'000, part) + "x")), Optional(HasSubstr("operators in one expression")))
        << part;
  }
  // Each call has a short expression of its own, but all of them are inside of each other.
  EXPECT_THAT(find_deep_code(function(times(190, "f(-----") + "x" + times(190, ")"))),
              Optional(HasSubstr("operators")));
}

TEST(CodeBounds, DeepBlocksAndManyBranchesAreFound) {
  std::string code = "def f():\n";
  for (std::size_t depth = 1; depth < 1000; ++depth) code += std::string(2 * depth, ' ') + "if x:\n";
  EXPECT_THAT(find_deep_code(code), Optional(HasSubstr("line 102 has more than 100 blocks inside of each other")));
  EXPECT_THAT(find_deep_code("if x:\n  y\n" + times(20'000, "elif x:\n  y\n")), Optional(HasSubstr("branches")));
}

TEST(CodeBounds, ListsStatementsAndTextsMayBeLong) {
  EXPECT_EQ(find_deep_code(function("[" + times(100'000, "-1.5 + (2.),\n    ") + "3]")), std::nullopt);
  EXPECT_EQ(find_deep_code(times(100'000, "x = (torch.neg)(-y)\n")), std::nullopt);
  EXPECT_EQ(find_deep_code(times(1000, "if x:\n  if y:\n    z\n  elif y:\n    z\n")), std::nullopt);
  const std::string brackets = times(20'000, "(");
  EXPECT_EQ(find_deep_code("x = \"" + brackets + "\\\"" + brackets + "\"\ny = '" + brackets + "' # " + brackets + "\n"),
            std::nullopt);
  EXPECT_EQ(find_deep_code("\"\"\"\n" + brackets + "\n\"\n" + brackets + "\"\"\"\n"), std::nullopt);
}

TEST(CodeBounds, AnyBytesAreTaken) {
  for (const char* text : {"", "\"", "'''", "\\", "\"\\", ")", "]]]", "\n\n", " ", "\"\"\""})
    (void)find_deep_code(text);
}

}  // namespace
}  // namespace disttrain::program
