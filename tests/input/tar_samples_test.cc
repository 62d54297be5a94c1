// tests/data/webdataset/make.py writes the files.
#include "input/tar_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/input/blocks.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<WantedColumn> kAll = {{"jpg;png", ValueKind::kBytes},
                                        {"cls", ValueKind::kInteger},
                                        {"seg.png", ValueKind::kBytes},
                                        {"__key__", ValueKind::kBytes}};

class TarSamples : public testing::TestWithParam<const char*> {
 protected:
  std::string decode(const std::vector<WantedColumn>& wanted, bool is_last = true) {
    const auto covered = find_tar_samples(block_of(content_, is_last), places_);
    if (!covered) return error_of(covered);
    covered_ = *covered;
    return error_of(decode_tar_samples(block_of(content_, is_last), places_, wanted, table_));
  }

  std::string content_ = read_whole(std::string(DISTTRAIN_TEST_DATA "/webdataset/") + GetParam());
  std::vector<RecordPlace> places_;
  std::size_t covered_ = 0;
  Table table_;
};

INSTANTIATE_TEST_SUITE_P(Formats, TarSamples, testing::Values("samples.tar", "samples-gnu.tar"));

TEST_P(TarSamples, BecomeColumns) {
  ASSERT_EQ(decode(kAll), "");
  EXPECT_EQ(covered_, content_.size());
  EXPECT_EQ(table_.records, 3U);
  std::string second;
  for (int i = 0; i < 300; ++i) second += "second";
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("\xff\xd8 first", second, ""));
  EXPECT_THAT(table_.columns[0].lengths, IsEmpty());
  EXPECT_THAT(table_.columns[1].integers, ElementsAre(7, -3));
  EXPECT_THAT(table_.columns[1].lengths, ElementsAre(1, 1, 0));
  EXPECT_THAT(table_.columns[2].bytes, ElementsAre("mask"));
  EXPECT_THAT(table_.columns[2].lengths, ElementsAre(1, 0, 0));
  ASSERT_EQ(table_.columns[3].bytes.size(), 3U);
  EXPECT_EQ(table_.columns[3].bytes[0], "n/0");
  EXPECT_THAT(std::string(table_.columns[3].bytes[1]), testing::EndsWith("longlong"));
  EXPECT_EQ(table_.columns[3].bytes[2], "n/2.x/\xc3\xa9");
}

TEST_P(TarSamples, MembersPointIntoTheBlock) {
  ASSERT_EQ(decode(kAll), "");
  for (const std::string_view bytes : {table_.columns[0].bytes[0], table_.columns[0].bytes[1]}) {
    EXPECT_GE(bytes.data(), content_.data());
    EXPECT_LT(bytes.data(), content_.data() + content_.size());
  }
}

// A data set that finds its records by an index decodes each sample from the bytes of this sample alone.
TEST_P(TarSamples, EachMayBeReadAlone) {
  ASSERT_EQ(decode(kAll), "");
  const auto places = places_;
  for (std::size_t r = 0; r < places.size(); ++r) {
    const std::string sample = content_.substr(places[r].begin, places[r].bytes);
    ASSERT_TRUE(decode_tar_samples(block_of(sample, false), std::vector{RecordPlace{0, sample.size()}},
                                   {{"cls", ValueKind::kFloat}}, table_));
    EXPECT_THAT(table_.columns[0].floats, r == 0   ? testing::ElementsAreArray({7.0F})
                                          : r == 1 ? testing::ElementsAreArray({-3.0F})
                                                   : testing::ElementsAreArray(std::vector<float>()));
  }
}

TEST_P(TarSamples, BlockMayEndAnywhere) {
  ASSERT_EQ(decode(kAll), "");
  const auto all = places_;
  const std::string whole = content_;
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 8) {
    content_ = whole.substr(0, bytes);
    ASSERT_EQ(decode(kAll, false), "") << bytes;
    // A sample is whole when the first header of the next one is there.
    ASSERT_LE(covered_, bytes);
    ASSERT_LE(places_.size(), 2U);
    for (std::size_t r = 0; r < places_.size(); ++r) {
      EXPECT_EQ(places_[r].begin, all[r].begin);
      EXPECT_EQ(places_[r].bytes, all[r].bytes);
    }
    if (bytes >= all[2].begin + 4096) {
      EXPECT_EQ(places_.size(), 2U) << bytes;
    }
  }
}

TEST_P(TarSamples, TruncatedFilesAreRefused) {
  const std::string whole = content_;
  ASSERT_EQ(decode(kAll), "");
  const std::size_t end = whole.find_last_not_of('\0');
  for (std::size_t bytes = 1; bytes < end; bytes += 7) {
    content_ = whole.substr(0, bytes);
    EXPECT_THAT(decode(kAll), HasSubstr("the tar file is damaged or truncated")) << bytes;
  }
}

TEST_P(TarSamples, DamagedHeaderIsRefused) {
  content_[content_.find("n/0.cls") + 2] = 'x';
  EXPECT_THAT(decode(kAll), HasSubstr("data file \"x\", record 10: the tar file is damaged or truncated near byte"));
  EXPECT_THAT(decode(kAll, false), HasSubstr("damaged or truncated near byte"));
}

TEST_P(TarSamples, WrongValuesNameRecordAndColumn) {
  EXPECT_EQ(decode({{"jpg", ValueKind::kFloat}}),
            "data file \"x\", record 10: sample 'n/0' has '\xff\xd8 first' in column 'jpg', expected a finite number: "
            "correct "
            "the record, add the word to data.missing, or give the column the kind \"category\"");
  EXPECT_THAT(decode({{"jpg;cls", ValueKind::kBytes}}),
              HasSubstr("record 10: sample 'n/0' has several members for column 'jpg;cls', expected one"));
}

TEST_P(TarSamples, OtherFilesAreRefused) {
  content_ = "a text file\n";
  EXPECT_THAT(decode(kAll), HasSubstr("the tar file is damaged"));
  content_ = std::string(10240, 'x');
  EXPECT_THAT(decode(kAll), HasSubstr("the tar file is damaged"));
  content_ = "";
  EXPECT_EQ(decode(kAll), "");
  EXPECT_EQ(table_.records, 0U);
  content_ = std::string(10240, '\0');
  EXPECT_EQ(decode(kAll), "");
  EXPECT_EQ(table_.records, 0U);
}

}  // namespace
}  // namespace disttrain::input
