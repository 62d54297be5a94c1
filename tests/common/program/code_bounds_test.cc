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

std::optional<std::string> find_deep_code(const std::string& code) {
  return CodeBounds().add("model/code/__torch__.py", code);
}

std::optional<std::string> find_long_chain(const std::string& code) {
  CodeBounds bounds;
  EXPECT_EQ(bounds.add("model/code/__torch__/a.py", "class A(Module):\n  b : __torch__.C0\n"), std::nullopt);
  EXPECT_EQ(bounds.add("model/code/__torch__.py", code), std::nullopt);
  return bounds.find_long_chain();
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

// The time to look a name up grows with the square of its length.
TEST(CodeBounds, LongNamesAreFound) {
  EXPECT_THAT(find_deep_code("x = __torch__" + times(500, ".a")), Optional(HasSubstr("characters in one name")));
  EXPECT_EQ(find_deep_code("x = __torch__" + times(490, ".a")), std::nullopt);
}

// libtorch overflows the stack with each of these.
TEST(CodeBounds, BranchesAroundOtherIfsAreFound) {
  const std::string begin = "if x:\n  y\n";
  EXPECT_THAT(find_deep_code(begin + times(5000, "elif x == 2:\n  if x == 3:\n    y = 4\n")),
              Optional(HasSubstr("branches of an if")));
  EXPECT_THAT(find_deep_code(begin + times(5000, "elif x:\n  iffy = 1\n")), Optional(HasSubstr("branches of an if")));
  // Each if has few branches, but they are inside of each other.
  std::string nested;
  for (std::size_t depth = 0; depth < 90; ++depth) {
    const std::string indentation(depth, ' ');
    nested +=
        indentation + "if x:\n" + indentation + " y\n" + times(20, indentation + "elif x:\n" + indentation + " y\n");
  }
  EXPECT_THAT(find_deep_code(nested), Optional(HasSubstr("branches of an if")));
  EXPECT_EQ(find_deep_code(times(100, begin + times(900, "elif x:\n  y\n") + "z = 1\n")), std::nullopt);
}

TEST(CodeBounds, TypeCommentsAreCode) {
  EXPECT_THAT(find_deep_code("def f(x):\n  # type: " + times(40'000, "(") + "int" + times(40'000, ")") + " -> int\n"),
              Optional(HasSubstr("line 2 has more than 200 brackets")));
  EXPECT_EQ(find_deep_code("def f(x):\n  # type is: " + times(40'000, "(") + "\n  return x\n"), std::nullopt);
}

TEST(CodeBounds, JoinedLinesAreOneStatement) {
  for (const char* part : {"-\\\n", "not \\\n", "- \\\n  "})
    EXPECT_THAT(find_deep_code("y = " + times(40'000, part) + "x\n"), Optional(HasSubstr("operators"))) << part;
}

TEST(CodeBounds, AnyWhiteSpaceIndents) {
  for (const char space : {'\f', '\v', '\r', '\t'}) {
    std::string code = "def f():\n";
    for (std::size_t depth = 1; depth < 1000; ++depth) code += space + std::string(depth, ' ') + "if x:\n";
    EXPECT_THAT(find_deep_code(code), Optional(HasSubstr("line 102 has more than 100 blocks")));
  }
}

TEST(CodeBounds, ManyLineEndsAfterEachOtherAreFound) {
  for (const char* end : {"\n", "#\n", " # type\n", "\\\n", " \f\n"}) {
    EXPECT_EQ(find_deep_code("x = 1" + times(400, end) + "\ny = 1\n"), std::nullopt) << end;
    EXPECT_THAT(find_deep_code("x = 1" + times(5'000'000, end) + "\ny = 1\n"), Optional(HasSubstr("empty lines")))
        << end;
  }
}

TEST(CodeBounds, LongChainsOfDefinitionsAreFound) {
  const auto chain = [](std::size_t count, const std::string& begin, const std::string& middle,
                        const std::string& end) {
    std::string code;
    for (std::size_t i = 0; i < count; ++i)
      code += begin + "C" + std::to_string(i) + middle + "C" + std::to_string(i + 1) + end;
    return code + "class C" + std::to_string(count) + ":\n  a : int\n";
  };
  const auto classes = [&](std::size_t count) { return chain(count, "class ", ":\n  a : __torch__.", "\n"); };
  const auto tuples = [&](std::size_t count) {
    return chain(count, "class ", "(NamedTuple):\n  a : __torch__.", "\n");
  };
  const auto functions = [&](std::size_t count) {
    return chain(count, "def ", "(x: int) -> int:\n  return __torch__ . ", "(x)\n");
  };
  EXPECT_EQ(find_long_chain(classes(100)), std::nullopt);
  EXPECT_THAT(find_long_chain(classes(20'000)), Optional(HasSubstr("need each other in too long a chain")));
  EXPECT_EQ(find_long_chain(functions(100)), std::nullopt);
  EXPECT_THAT(find_long_chain(functions(20'000)), Optional(HasSubstr("chain")));
  EXPECT_EQ(find_long_chain(tuples(4)), std::nullopt);
  EXPECT_THAT(find_long_chain(tuples(20)), Optional(HasSubstr("chain"))) << "libtorch's time doubles with each";
  // The functions of a class may call each other.
  const auto methods = [](std::size_t count) {
    std::string code = "class C0(Module):\n";
    for (std::size_t i = 0; i < count; ++i)
      code += "  def m" + std::to_string(i) + "(self) -> int:\n    return (self).m" + std::to_string(i + 1) + "()\n";
    return code;
  };
  EXPECT_EQ(find_long_chain(methods(100)), std::nullopt);
  EXPECT_THAT(find_long_chain(methods(20'000)), Optional(HasSubstr("chain")));
  // Deep expressions make a chain heavier.
  EXPECT_THAT(
      find_long_chain(chain(20, "def ", "(x: int) -> int:\n  return " + times(900, "-") + "__torch__.", "(x)\n")),
      Optional(HasSubstr("chain")));
  // Many classes that don't need each other are no chain, nor are the classes of a list.
  std::string code = "class C0(Module):\n";
  for (int i = 1; i <= 10'000; ++i) code += "  m" + std::to_string(i) + " : __torch__.C" + std::to_string(i) + "\n";
  for (int i = 1; i <= 10'000; ++i)
    code += "class C" + std::to_string(i) + "(Module):\n  def f(self) -> int:\n    return 1\n";
  EXPECT_EQ(find_long_chain(code), std::nullopt);
  EXPECT_EQ(find_long_chain("class C0:\n  next : Optional[__torch__.C0]\n"), std::nullopt);
}

TEST(CodeBounds, NamesThatNeedntBeSeenAreRefused) {
  EXPECT_THAT(find_long_chain("class C0:\n  def f(self) -> int:\n    x = __torch__\n    return x.g(1)\n"),
              Optional(HasSubstr("__torch__.C0 needs __torch__, which the code lacks")));
  EXPECT_EQ(find_long_chain("class C0:\n  a : __torch__.torch.classes.quantized.Linear\n"), std::nullopt);
  EXPECT_THAT(find_long_chain("class C0:\n  a : int\nclass C0:\n  b : int\n"), Optional(HasSubstr("two definitions")));
  EXPECT_THAT(CodeBounds().add("model/code/other.py", "class C0:\n  a : int\n"), Optional(HasSubstr("__torch__")));
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
