#include "input/libsvm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "input/lines.h"
#include "tests/input/blocks.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Libsvm : public testing::Test {
 protected:
  std::string decode(const std::string& content, ValueKind label = ValueKind::kInteger) {
    content_ = content;
    const RecordBlock block = block_of(content_);
    EXPECT_TRUE(find_lines(block, places_));
    const std::vector<WantedColumn> wanted = {{"features", ValueKind::kFloat}, {"label", label}};
    return error_of(decode_libsvm(block, places_, wanted, shape_, table_));
  }

  LibsvmShape shape_{.width = 3, .one_based = true};
  std::string content_;
  std::vector<RecordPlace> places_;
  Table table_;
};

TEST_F(Libsvm, LinesBecomeLabelsAndDenseFeatures) {
  ASSERT_EQ(decode("+1 1:0.5 3:-2\r\n-1\t2:1e1  # 1:7\n0 \n"), "");
  EXPECT_EQ(table_.records, 3U);
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(0.5F, 0, -2, 0, 10, 0, 0, 0, 0));
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(3, 3, 3));
  EXPECT_THAT(table_.columns[1].integers, ElementsAre(1, -1, 0));
  EXPECT_THAT(table_.columns[1].lengths, IsEmpty());
}

TEST_F(Libsvm, IndicesMayBeginAt0) {
  shape_.one_based = false;
  ASSERT_EQ(decode("0.5 0:1 2:3\n", ValueKind::kFloat), "");
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(1, 0, 3));
  EXPECT_THAT(table_.columns[1].floats, ElementsAre(0.5F));
  EXPECT_THAT(decode("1 3:1\n"), HasSubstr("x:1: index 3 in column 'features', expected 0 to 2"));
}

TEST_F(Libsvm, LabelsMayBeWords) {
  ASSERT_EQ(decode("cat 1:1\n2-3 1:1\n", ValueKind::kBytes), "");
  EXPECT_THAT(table_.columns[1].bytes, ElementsAre("cat", "2-3"));
}

// [data.columns] may name the label alone.
TEST_F(Libsvm, LabelsAreReadWithoutFeatures) {
  content_ = "2 1:5 3:x\n-1\n";
  const RecordBlock block = block_of(content_);
  ASSERT_TRUE(find_lines(block, places_));
  EXPECT_EQ(error_of(decode_libsvm(block, places_, {{"label", ValueKind::kFloat}}, LibsvmShape(), table_)), "");
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(2, -1));
}

TEST_F(Libsvm, WrongLinesAreRefused) {
  EXPECT_EQ(decode("1 1:1\n\n1 1:x\n"),
            "x:3: 'x' in column 'features', expected a finite number: correct the line, or add the word to "
            "data.missing");
  EXPECT_THAT(decode("1.5 1:1\n"), HasSubstr("x:1: '1.5' in column 'label', expected a whole number"));
  EXPECT_THAT(decode("a\n", ValueKind::kFloat), HasSubstr("'a' in column 'label', expected a finite number"));
  EXPECT_THAT(decode("1,2 1:1\n"), HasSubstr("'1,2' in column 'label', expected one value"));
  EXPECT_THAT(decode("a,k\n", ValueKind::kBytes), HasSubstr("'a,k' in column 'label', expected one value"));
  EXPECT_THAT(decode("\x01 1:1\n", ValueKind::kBytes),
              HasSubstr("expected a number or a word (is data.format right?)"));
  EXPECT_THAT(decode("1 qid:3 1:1\n"),
              HasSubstr("'qid:3' in column 'features', expected INDEX:VALUE, because disttrain"));
  EXPECT_THAT(decode("1 0:1\n"), HasSubstr("index 0 in column 'features', expected 1 to 3"));
  EXPECT_THAT(decode("1 4:1\n"), HasSubstr("index 4 in column"));
  EXPECT_THAT(decode("1 18446744073709551615:1\n"), HasSubstr("index 18446744073709551615 in column"));
  EXPECT_THAT(decode("1 18446744073709551616:1\n"), HasSubstr("expected INDEX:VALUE"));
  EXPECT_THAT(decode("1 2:1 2:2\n"),
              HasSubstr("index 2 behind index 2 in column 'features', expected indices that grow"));
  for (const char* line : {"1 1\n", "1 :1\n", "1 1:\n", "1 1:1:1\n", "1 -1:1\n", "# 1\n"})
    EXPECT_THAT(decode(line), HasSubstr("x:1: ")) << line;
}

TEST_F(Libsvm, OtherColumnsAreRefused) {
  const RecordBlock block = block_of(content_);
  const auto refused = [&](const WantedColumn& column) {
    const auto result = decode_libsvm(block, {}, {column}, shape_, table_);
    EXPECT_EQ(result.error().code, ErrorCode::kConfig);
    return result.error().message;
  };
  EXPECT_THAT(refused({"age", ValueKind::kFloat}), HasSubstr("column 'age' of a libsvm file doesn't exist"));
  EXPECT_THAT(refused({"features", ValueKind::kBytes}), HasSubstr("column 'features' of a libsvm file can't be"));
}

}  // namespace
}  // namespace disttrain::input
