#include "common/printable.h"

#include <gtest/gtest.h>

namespace disttrain {
namespace {

TEST(Printable, WhatCommandsATerminalIsShown) {
  EXPECT_EQ(printable("\x1b[2J\rx\x7f"), "\\x1b[2J\\x0dx\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m")
      << "CSI as one character of UTF-8";
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("a\tb"), "a b");
}

TEST(Printable, NewlinesAreShownOrKept) {
  EXPECT_EQ(printable("one\ntwo"), "one\\ntwo");
  EXPECT_EQ(printable("one\ntwo", Lines::kMany), "one\ntwo");
  EXPECT_EQ(indented("one\ntwo\nthree"), "one\n    two\n    three");
}

TEST(Printable, JoinedLinesAreUnfoldedIfTheyAreIndented) {
  EXPECT_EQ(unfolded(printable("its last lines:\n  one\n    two")), "its last lines:\n  one\n    two");
  EXPECT_EQ(unfolded("C:\\new\\n \\n"), "C:\\new\\n \\n") << "no newline of ours";
  EXPECT_EQ(unfolded(""), "");
}

TEST(Printable, WhatMisleadsAReaderIsShown) {
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "abc"),
            "\\u202eabc")
      << "right to left";
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028") << "a line separator";
}

TEST(Printable, WordsOfAnyLanguageStay) {
  for (const char* text : {"plain", "größer", "学習", "\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_TRUE(is_printable(text));
  }
  EXPECT_FALSE(is_printable("a\nb"));
}

TEST(Printable, BytesThatAreNotUtf8AreShown) {
  EXPECT_EQ(printable("a\xff"
                      "b"),
            "a\\xffb");
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "half of a character";
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "longer than it need be";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
}

TEST(Printable, WhatItShowsIsPrintable) {
  for (int c = 0; c < 256; ++c) EXPECT_TRUE(is_printable(printable(std::string(3, static_cast<char>(c))))) << c;
}

TEST(CutText, LeavesNoHalfCharacters) {
  EXPECT_EQ(cut_text("abcdef", 4), "abcd");
  EXPECT_EQ(cut_text("abc", 4), "abc");
  EXPECT_EQ(cut_text("ab\xe5\xad\xa6", 4), "ab");
  EXPECT_EQ(cut_text("ab\xe5\xad\xa6", 5), "ab\xe5\xad\xa6");
  EXPECT_EQ(cut_text(std::string(8, '\x80'), 4).size(), 1u) << "no characters: a few bytes less";
}

}  // namespace
}  // namespace disttrain
