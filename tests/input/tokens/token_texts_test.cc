// Texts whose records are windows of tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "input/tokenise_text.h"
#include "tests/input/tokens/token_files.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TokenTexts : public TokenColumns {
 protected:
  Source text_source() const {
    Source source;
    source.format = DataFormat::kText;
    source.path = folder_.path();
    source.files = "*.txt";
    source.tokenizer = folder_.write("tokenizer.json", kTokenizer);
    source.window = 3;
    source.stride = 2;
    return source;
  }
};

TEST_F(TokenTexts, RecordsAreWindowsOfTokens) {
  folder_.write("a.txt", "abba");  // 4 3 2 1 5
  folder_.write("b.txt", "");      // 4 5: shorter than a window
  folder_.write("c.txt", "bb");    // 4 2 2 5
  const auto dataset = load_dataset(text_source());
  ASSERT_TRUE(dataset) << dataset.error().message;
  ASSERT_EQ((*dataset)->records(), 3U);
  EXPECT_EQ((*dataset)->columns()[0].dtype, DType::kInt32);
  EXPECT_EQ((*dataset)->columns()[0].largest, 5);
  EXPECT_THAT(record(**dataset, 0), ElementsAre(4, 3, 2));
  EXPECT_THAT(record(**dataset, 1), ElementsAre(2, 1, 5));
  EXPECT_THAT(record(**dataset, 2), ElementsAre(4, 2, 2));
}

TEST_F(TokenTexts, ErrorsNameTheFile) {
  folder_.write("a.txt", "ab\xff");
  const auto invalid = load_dataset(text_source());
  ASSERT_FALSE(invalid);
  EXPECT_THAT(invalid.error().message, HasSubstr("a.txt: isn't UTF-8 at its byte 2"));
  folder_.write("a.txt", std::string(1000, 'a'));
  Source small = text_source();
  small.memory = 3000;
  const auto large = load_dataset(small);
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().message, HasSubstr("raise data.memory"));
}

TEST(TextPieces, EndAtALineEndBetweenCharacters) {
  std::string text(kTextPieceBytes - 3, 'x');
  text += "\nab \ncd\n\nef\ngh";
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(end_of_piece(bytes), text.find("gh"));
  EXPECT_EQ(end_of_piece(bytes.first(10)), 10U);
  std::string wide;  // characters of 3 bytes and no line end
  while (wide.size() < kMaxTextPieceBytes + 100) wide += "\xe7\x8b\x90";
  EXPECT_EQ(end_of_piece(std::as_bytes(std::span(wide))), kMaxTextPieceBytes - kMaxTextPieceBytes % 3);
}

}  // namespace
}  // namespace disttrain::input
