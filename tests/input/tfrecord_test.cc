// tests/data/tfrecord/make.py writes the file that these tests read.
#include "input/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/input/input_files.h"
#include "transport/wire/checksum.h"

namespace disttrain::input {
namespace {

// Whether the text is a number, which the decoder has made of a list of numbers.
bool number_in(std::string_view text) {
  double number = 0.0;
  return std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc::invalid_argument;
}

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<WantedColumn> kAll = {
    {"pixels", ValueKind::kFloat}, {"age", ValueKind::kInteger}, {"job", ValueKind::kBytes}};

class TfRecord : public testing::Test {
 protected:
  RecordBlock block() const {
    RecordBlock out;
    out.path = "x.tfrecord";
    out.offset = 1000;
    out.first_record = 10;
    out.is_last = is_last_;
    out.bytes = std::as_bytes(std::span(content_));
    return out;
  }

  // The error of framing or decoding, or "".
  std::string decode(const std::vector<WantedColumn>& wanted) {
    const auto covered = find_tfrecords(block(), records_);
    if (!covered) {
      EXPECT_EQ(covered.error().code, ErrorCode::kData);
      return covered.error().message;
    }
    covered_ = *covered;
    const auto done = decode_examples(block(), records_, wanted, table_);
    if (done) return "";
    EXPECT_EQ(done.error().code, ErrorCode::kData);
    return done.error().message;
  }

  // Writes the checksum of the record's data, so that a test reaches the decoder with damaged data.
  void correct_checksum(const RecordPlace& place) {
    const std::uint32_t crc = wire::crc32c(block().bytes.subspan(place.begin, place.bytes));
    const std::uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
    std::memcpy(content_.data() + place.begin + place.bytes, &masked, 4);
  }

  // A file with one record.
  void write_record(const std::string& data) {
    content_.assign(12, '\0');
    const std::uint64_t length = data.size();
    std::memcpy(content_.data(), &length, 8);
    const std::uint32_t crc = wire::crc32c(block().bytes.first(8));
    const std::uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
    std::memcpy(content_.data() + 8, &masked, 4);
    content_ += data + "....";
    correct_checksum({12, data.size()});
  }

  std::string content_ = read_whole(DISTTRAIN_TEST_DATA "/tfrecord/examples.tfrecord");
  bool is_last_ = true;
  std::vector<RecordPlace> records_;
  std::size_t covered_ = 0;
  Table table_;
};

TEST_F(TfRecord, ExamplesBecomeColumns) {
  ASSERT_EQ(decode(kAll), "");
  EXPECT_EQ(covered_, content_.size());
  EXPECT_EQ(table_.records, 3u);
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(0.5F, -1.25F, 2.0F));
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(2, 0, 1));
  EXPECT_THAT(table_.columns[1].integers, ElementsAre(39, -3, std::int64_t{1} << 62));
  EXPECT_THAT(table_.columns[1].lengths, IsEmpty());
  EXPECT_THAT(table_.columns[2].bytes, ElementsAre("clerk", "cook", "", std::string_view("\xff\0", 2)));
  EXPECT_THAT(table_.columns[2].lengths, ElementsAre(1, 2, 1));
}

TEST_F(TfRecord, ColumnOfFloatsTakesIntegers) {
  ASSERT_EQ(decode({{"age", ValueKind::kFloat}}), "");
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(39, -3, 0x1p62F));
}

TEST_F(TfRecord, OneFeatureMayFillSeveralColumns) {
  const WantedColumn job{"job", ValueKind::kBytes};
  ASSERT_EQ(decode({{"age", ValueKind::kFloat}, job, {"age", ValueKind::kInteger}, job, job}), "");
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(39, -3, 0x1p62F));
  EXPECT_THAT(table_.columns[2].integers, ElementsAre(39, -3, std::int64_t{1} << 62));
  for (const std::size_t c : {1, 3, 4})
    EXPECT_THAT(table_.columns[c].bytes, ElementsAre("clerk", "cook", "", std::string_view("\xff\0", 2)));
}

TEST_F(TfRecord, TypeThatDiffersNamesRecordAndColumn) {
  EXPECT_EQ(decode({{"job", ValueKind::kInteger}}),
            "data file \"x.tfrecord\", record 10: column 'job' has a bytes_list, expected an int64_list: correct the "
            "record, or the kind of the column");
  EXPECT_THAT(decode({{"job", ValueKind::kFloat}}), HasSubstr("record 10: 'clerk' in column 'job', expected a finite"));
}

// So that numbers may be categories and labels.
TEST_F(TfRecord, NumbersBecomeTextInAColumnOfBytes) {
  ASSERT_EQ(decode({{"age", ValueKind::kBytes}, {"pixels", ValueKind::kBytes}}), "");
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("39", "-3", "4611686018427387904"));
  EXPECT_EQ(table_.columns[1].bytes.front(), "0.5");
}

// Features { feature { key: "a" value { int64_list { value: 1 } } } }, then again with 2 and 3, the latter not packed.
TEST_F(TfRecord, LastOfTwoFeaturesCounts) {
  using namespace std::string_literals;
  write_record("\x0a\x1d"s + "\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x01"s +
               "\x0a\x0f\x0a\x01\x61\x12\x0a\x1a\x08\x08\x02\x08\x03\x0a\x02\x04\x05"s);
  ASSERT_EQ(decode({{"a", ValueKind::kInteger}}), "");
  EXPECT_THAT(table_.columns[0].integers, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(4));
}

// The last feature has no list, so it has no values.
TEST_F(TfRecord, EmptyFeatureDropsEarlierOne) {
  using namespace std::string_literals;
  write_record("\x0a\x13"s + "\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x01"s + "\x0a\x05\x0a\x01\x61\x12\x00"s);
  ASSERT_EQ(decode({{"a", ValueKind::kInteger}}), "");
  EXPECT_THAT(table_.columns[0].integers, IsEmpty());
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(0));
}

TEST_F(TfRecord, FloatsOfFiveBytesAreRefused) {
  write_record(
      "\x0a\x10\x0a\x0e\x0a\x01\x61\x12\x09\x12\x07\x0a\x05"
      "12345");
  EXPECT_THAT(decode({{"a", ValueKind::kFloat}}), HasSubstr("record 10 isn't a tf.Example"));
}

TEST_F(TfRecord, FileThatEndsWithinRecordIsRefusedAtEachByte) {
  ASSERT_EQ(decode(kAll), "");
  const std::string whole = content_;
  for (std::size_t size = records_[2].begin - 11; size < whole.size(); ++size) {
    content_ = whole.substr(0, size);
    EXPECT_THAT(decode(kAll), HasSubstr("record 12 is truncated")) << size;
  }
}

TEST_F(TfRecord, BlockMayEndWithinRecord) {
  content_.resize(content_.size() - 1);
  is_last_ = false;
  ASSERT_EQ(decode(kAll), "");
  EXPECT_EQ(table_.records, 2u);
  EXPECT_EQ(covered_, records_[1].begin + records_[1].bytes + 4);
}

TEST_F(TfRecord, DamageIsFoundByChecksums) {
  const std::string whole = content_;
  content_[0] ^= 1;
  EXPECT_THAT(decode(kAll), HasSubstr("record 10: the length at byte 1000 has checksum"));
  content_ = whole;
  content_[20] ^= 1;
  EXPECT_THAT(decode(kAll), HasSubstr("record 10: the data at byte 1012 has checksum"));
}

TEST_F(TfRecord, DataThatIsNoExampleIsRefused) {
  write_record("\x0a\x7fhello");
  EXPECT_THAT(decode(kAll), HasSubstr("record 10 isn't a tf.Example: found"));
}

// Damages the data and corrects its checksum. DISTTRAIN_FUZZ_EXECUTIONS sets the number of executions.
TEST_F(TfRecord, DamagedExamplesAreAnErrorOrATable) {
  const char* const wish = std::getenv("DISTTRAIN_FUZZ_EXECUTIONS");
  const long executions = wish != nullptr ? std::atol(wish) : 20000;
  ASSERT_EQ(decode(kAll), "");
  const std::vector<RecordPlace> good_records = records_;
  const std::string good = content_;
  std::mt19937_64 random(7);  // a failing execution repeats with the same seed
  long refused = 0;
  for (long n = 0; n < executions; ++n) {
    const RecordPlace& place = good_records[random() % good_records.size()];
    std::string data = good.substr(place.begin, place.bytes);
    if (random() % 4 == 0) data.resize(random() % (data.size() + 1));
    for (unsigned flips = random() % 5; flips > 0 && !data.empty(); --flips)
      data[random() % data.size()] = static_cast<char>(random());
    write_record(data);
    content_.shrink_to_fit();
    const std::string error = decode(kAll);
    refused += error.empty() ? 0 : 1;
    for (std::size_t c = 0; error.empty() && c < kAll.size(); ++c) {
      const TableColumn& column = table_.columns[c];
      const std::size_t values = column.floats.size() + column.integers.size() + column.bytes.size();
      ASSERT_EQ(values, column.lengths.empty() ? 1 : column.lengths[0]) << "execution " << n;
      for (const std::string_view text : column.bytes) {
        const bool is_in_record =
            text.data() >= content_.data() && text.data() + text.size() <= content_.data() + content_.size();
        ASSERT_TRUE(is_in_record || number_in(text)) << "execution " << n;
      }
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, executions);
}

}  // namespace
}  // namespace disttrain::input
