// The words of a training set have a bound in bytes.
#include "input/word_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "input/columns.h"

namespace disttrain::input {
namespace {

using testing::HasSubstr;

class Words : public testing::Test {
 protected:
  Words() {
    columns_.emplace_back().name = "site";
    columns_.back().kind = ColumnKind::kCategory;
  }

  ColumnFit fit() { return ColumnFit(columns_, {}, "", false, &room_); }

  std::string take(ColumnFit& fit, const std::vector<std::string_view>& words) {
    Table table;
    start_table(wanted_columns(columns_, {}), table);
    table.records = words.size();
    table.columns[0].bytes.assign(words.begin(), words.end());
    const Status taken = fit.take(table, [](std::uint64_t) { return "file"; });
    return taken ? "" : taken.error().message;
  }

  std::vector<ColumnSection> columns_;
  WordRoom room_{170};  // for two words
};

TEST_F(Words, BeyondTheRoomAreRefused) {
  ColumnFit fit = this->fit();
  EXPECT_EQ(take(fit, {"one", "two", "one"}), "");
  EXPECT_EQ(take(fit, {"two"}), "");
  const std::string error = take(fit, {"one", "six"});
  EXPECT_THAT(error,
              HasSubstr("the different words of column 'site', with those of other columns, take more than the "));
  EXPECT_THAT(error, HasSubstr("Set data.columns.site.hash, "));
  EXPECT_THAT(error, HasSubstr("or raise data.memory"));
}

TEST_F(Words, OfSeveralFilesShareTheRoom) {
  ColumnFit first = fit();
  ColumnFit second = fit();
  EXPECT_EQ(take(first, {"one"}), "");
  EXPECT_EQ(take(second, {"one", "one"}), "");
  ColumnFit third = fit();
  EXPECT_NE(take(third, {"two"}), "");
}

TEST_F(Words, ThatTwoFilesHaveCountOnceWhenTheyAreMerged) {
  ColumnFit first = fit();
  ColumnFit second = fit();
  EXPECT_EQ(take(first, {"one"}), "");
  EXPECT_EQ(take(second, {"one"}), "");
  ASSERT_TRUE(first.merge(std::move(second)));
  EXPECT_EQ(take(first, {"two"}), "");
  EXPECT_NE(take(first, {"six"}), "");
  columns_.front().min_count = 2;
  const Result<FittedColumns> fitted = first.done(columns_);
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_THAT(fitted->columns[0].vocabulary, testing::ElementsAre("one"));
}

}  // namespace
}  // namespace disttrain::input
