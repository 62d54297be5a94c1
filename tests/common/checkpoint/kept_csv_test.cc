// The labels and the header of csv files without [data.columns], as a checkpoint keeps them.
#include "common/checkpoint/kept_csv.h"

#include <gtest/gtest.h>

#include "common/bounds.h"

namespace disttrain::checkpoint {
namespace {

using Words = std::vector<std::string>;

std::optional<KeptCsv> kept_again(const KeptCsv& csv) {
  const auto columns = decode_columns(encode_csv(csv), "columns.cbor");
  EXPECT_TRUE(columns) << columns.error().message;
  return columns ? csv_of(*columns) : std::nullopt;
}

TEST(KeptCsv, ComesBackAsItWas) {
  for (const KeptCsv& csv :
       {KeptCsv{{"cat", "d\xC3\xB6g"}, {"width", "height", "kind"}}, KeptCsv{{"cat"}, {}}, KeptCsv()})
    EXPECT_EQ(kept_again(csv), csv);
}

TEST(KeptCsv, ColumnsWithNamesAreThoseOfDataColumns) {
  EXPECT_EQ(csv_of({}), std::nullopt);
  EXPECT_EQ(csv_of({{.name = "age", .words = {}}, {.name = "country", .words = {"de"}}}), std::nullopt);
}

TEST(KeptCsv, TooManyWordsAreNotKept) {
  EXPECT_EQ(encode_csv({{std::string(kMaxKeptColumnsBytes, 'x')}, {}}), "");
  EXPECT_NE(encode_csv({{std::string(kMaxKeptColumnsBytes / 2, 'x')}, {}}), "");
}

TEST(KeptCsv, OtherLabelsAreTheDifference) {
  const auto with_labels = [](const Words& labels) { return KeptCsv{labels, {}}; };
  const KeptCsv kept = with_labels({"Cat", "cat", "dog"});
  EXPECT_EQ(difference(kept, kept), std::nullopt);
  EXPECT_EQ(difference(kept, with_labels({"cat", "dog"})), "label 0 was 'Cat' and is 'cat' now");
  EXPECT_EQ(difference(kept, with_labels({"Cat", "cat"})), "label 2 was 'dog', and there are only 2 now");
  EXPECT_EQ(difference(with_labels({"Cat", "cat"}), kept), "label 2 is 'dog' now, and there were only 2");
  EXPECT_EQ(difference(kept, KeptCsv()), "the labels were words and are numbers now");
  EXPECT_EQ(difference(KeptCsv(), kept), "the labels were numbers and are words now");
}

TEST(KeptCsv, AnotherOrderOfColumnsIsTheDifference) {
  const auto with_header = [](const Words& header) { return KeptCsv{{}, header}; };
  const KeptCsv kept = with_header({"a", "b", "k"});
  EXPECT_EQ(difference(kept, kept), std::nullopt);
  EXPECT_EQ(difference(kept, with_header({"b", "a", "k"})), "the header's column 1 was 'a' and is 'b' now");
  EXPECT_EQ(difference(kept, with_header({"a", "b", "kind"})), std::nullopt) << "the last column is the label";
  EXPECT_EQ(difference(kept, with_header({"a", "b"})), "the header's column 3 was 'k', and there are only 2 now");
  EXPECT_EQ(difference(kept, with_header({"a", "b", "c", "k"})), "the header's column 3 was 'k' and is 'c' now");
  EXPECT_EQ(difference(kept, with_header({})), std::nullopt) << "the header may be removed";
  EXPECT_EQ(difference(with_header({}), kept), std::nullopt) << "or added";
}

TEST(KeptCsv, LongWordsAreCut) {
  const std::string text = difference({{std::string(1000, 'a')}, {}}, {{"b\n"}, {}}).value_or("");
  EXPECT_EQ(text, "label 0 was '" + std::string(40, 'a') + "...' and is 'b\\n' now");
}

}  // namespace
}  // namespace disttrain::checkpoint
