// A document that exceeds a bound is refused before the TOML library sees it.
#include "common/config/reader/toml_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/reader/toml_tree.h"

namespace disttrain::config {
namespace {

using testing::HasSubstr;

std::string repeated(const std::string& text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

// Returns "" if the text is within the bounds.
std::string excess_in(const std::string& text) {
  const auto excess = find_excess(text);
  return excess ? excess->what : "";
}

bool is_parsed(const std::string& text) {
  return parse_toml(std::make_shared<const TomlSource>(TomlSource{"x.toml", text})).has_value();
}

TEST(TomlBounds, KeyHasSixteenPartsAtMost) {
  EXPECT_EQ(excess_in(repeated("a.", 15) + "a = 1"), "");
  EXPECT_EQ(excess_in("[" + repeated("a.", 15) + "a]"), "");
  for (const std::string& text :
       {repeated("a.", 16) + "a = 1", repeated("a . ", 16) + "a = 1", "[" + repeated("a.", 60'000) + "a]",
        "[[" + repeated("\"a\".", 16) + "a]]", repeated("'a'.", 60'000) + "a = 1",
        "x = { " + repeated("a.", 60'000) + "a = 1 }", "x = [1, { y = 1, " + repeated("a.", 16) + "a = 1 }]"})
    EXPECT_EQ(excess_in(text), "a key has more than 16 parts") << text.substr(0, 60);
}

TEST(TomlBounds, DotsOfStringsAndCommentsAreNoParts) {
  const std::string dots = repeated("a.", 100);
  for (const std::string& text :
       {"x = \"" + dots + "\"", "x = '" + dots + "'", "x = \"\"\"\n" + dots + "\"\n" + dots + "\"\"\"",
        "x = '''" + dots + "\n''" + dots + "'''", "# " + dots + "\nx = 1", "x = \"\\\"" + dots + "\"",
        "x = \"\" # " + dots, "\"" + dots + "\" = 1", repeated("x = 1.5\ny = 2.5\n", 1), repeated("[a.b]\n", 20)})
    EXPECT_EQ(excess_in(text), "") << text.substr(0, 60);
}

// A multi-line string may end with up to five quotes. The check must not take the rest of the line for another string.
TEST(TomlBounds, KeyBehindAStringIsSeen) {
  const std::string deep = repeated("a.", 60'000) + "a = 1 }";
  for (const char* text :
       {R"("""b"""")", R"("""b""""")", "''''b''''", R"("""\""""")", R"('\')", R"("\\")", "''", R"("")"})
    EXPECT_EQ(excess_in("x = { y = " + std::string(text) + ", " + deep), "a key has more than 16 parts") << text;
}

TEST(TomlBounds, NestingIsSixteenAtMost) {
  EXPECT_EQ(excess_in("x = " + repeated("[", 16) + repeated("]", 16)), "");
  EXPECT_EQ(excess_in("x = " + repeated("[", 17)), "arrays and tables nest more than 16 deep");
  EXPECT_EQ(excess_in("x = " + repeated("{ a = ", 17)), "arrays and tables nest more than 16 deep");
  EXPECT_EQ(excess_in(repeated("[[ps]]\n", 1000)), "");
}

TEST(TomlBounds, ItemsAndBytesAreBounded) {
  EXPECT_EQ(excess_in("x = [" + repeated("1,", 60'000) + "]"), "");
  EXPECT_THAT(excess_in("x = [" + repeated("1,", 70'000) + "]"), HasSubstr("more than 65536 keys and elements"));
  EXPECT_THAT(excess_in(repeated("[a]\n", 70'000)), HasSubstr("more than 65536 keys and elements"));
  EXPECT_THAT(excess_in(repeated("\n", kMaxTomlBytes + 1)), HasSubstr("1048577 bytes; expected at most 1048576"));
}

TEST(TomlBounds, PlaceOfAnExcessIsTold) {
  const auto excess = find_excess("x = \"\"\"\n\n\"\"\"\n" + repeated("a.", 16) + "a = 1");
  ASSERT_TRUE(excess);
  EXPECT_EQ(excess->line, 4u);
  EXPECT_EQ(excess->column, 32u);
}

// An assertion of toml++ fails for the first text, which ended the process.
TEST(TomlBounds, ControlCharactersAreFoundWithTheirPlace) {
  for (const std::string& text :
       {std::string("s=[]\n[\x1f"), std::string("s = 1\n#\x7f"), std::string("s = 1\n'\0'", 9)}) {
    const auto excess = find_excess(text);
    ASSERT_TRUE(excess) << text;
    EXPECT_TRUE(excess->what.starts_with("the text has the control character 0x")) << excess->what;
    EXPECT_EQ(excess->line, 2u);
    EXPECT_EQ(excess->column, 2u);
    EXPECT_FALSE(parse_toml(std::make_shared<TomlSource>(TomlSource{"x", text})));
  }
  EXPECT_FALSE(find_excess("a = 1\t# \xc3\xb6\r\n"));
}

// The library parses the deepest document that the bounds allow. The library's tree and ours are freed without a stack
// overflow.
TEST(TomlBounds, DeepestDocumentIsParsed) {
  const std::string key = repeated("a.", 15) + "a";
  std::string text = "[" + key + "]\n" + key + " = ";
  for (std::size_t i = 0; i < kMaxTomlNesting; ++i) text += "{ " + key + " = ";
  text += "1";
  for (std::size_t i = 0; i < kMaxTomlNesting; ++i) text += " }";
  EXPECT_EQ(excess_in(text), "");
  EXPECT_TRUE(is_parsed(text));
}

}  // namespace
}  // namespace disttrain::config
