#include "input/csv_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/random.h"
#include "tests/input/blocks.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<WantedColumn> kWanted = {{"w", ValueKind::kBytes}, {"x", ValueKind::kFloat, {"?"}}};

// Reads a whole file as one block.
class CsvRows : public testing::Test {
 protected:
  std::string read(const std::string& content, const std::vector<WantedColumn>& wanted = kWanted,
                   bool has_header = true) {
    content_ = content;
    const auto header = read_csv_header(block_of(content_), wanted, has_header);
    if (!header.has_value()) return error_of(header);
    header_ = header->value();
    RecordBlock rows = block_of(content_);
    rows.bytes = rows.bytes.subspan(header_.bytes);
    rows.offset = header_.bytes;
    rows.first_line = header_.rows_line;
    const auto covered = find_csv_rows(rows, places_);
    if (!covered) return error_of(covered);
    EXPECT_EQ(*covered, rows.bytes.size());
    return error_of(decode_csv_rows(rows, places_, header_, wanted, table_));
  }

  std::string content_;
  CsvHeader header_;
  std::vector<RecordPlace> places_;
  Table table_;
};

TEST_F(CsvRows, BecomeColumns) {
  ASSERT_EQ(read("x, w ,y\r\n1,a,0\r\n\r\n-2.5 , b c,0\n+3,,0"), "");
  EXPECT_EQ(table_.records, 3U);
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("a", "b c", ""));
  EXPECT_THAT(table_.columns[1].floats, ElementsAre(1, -2.5F, 3));
  EXPECT_THAT(table_.columns[1].lengths, IsEmpty());
}

// The kind of the column says what becomes of them.
TEST_F(CsvRows, BlanksOfUnicodeBelongToAFieldAndNotToAName) {
  ASSERT_EQ(read("\xC2\xA0w,x\xC2\xA0\n \xC2\xA0"
                 "a\f ,\xEF\xBB\xBF"
                 "1\v\n"),
            "");
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("\xC2\xA0"
                                                   "a\f"));
  EXPECT_THAT(table_.columns[1].floats, ElementsAre(1));
}

TEST_F(CsvRows, QuotesMayHoldCommasQuotesAndLineEnds) {
  ASSERT_EQ(read("w,x\n\"a,\n\"\"\"\"b\" ,1\n\"\",2\n\"c\"\"\",3\n"), "");
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("a,\n\"\"b", "", "c\""));
  EXPECT_THAT(table_.columns[1].floats, ElementsAre(1, 2, 3));
}

TEST_F(CsvRows, MissingNumbersAreNan) {
  ASSERT_EQ(read("w,x\n?,?\nb, \n"), "");
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("?", "b"));
  EXPECT_TRUE(std::isnan(table_.columns[1].floats[0]));
  EXPECT_TRUE(std::isnan(table_.columns[1].floats[1]));
}

TEST_F(CsvRows, NumbersAreColumnsWithoutAHeader) {
  ASSERT_EQ(read("\xEF\xBB\xBF\n7,a\n8,b\n", {{"1", ValueKind::kBytes}, {"0", ValueKind::kInteger}}, false), "");
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("a", "b"));
  EXPECT_THAT(table_.columns[1].integers, ElementsAre(7, 8));
}

TEST_F(CsvRows, NamesMayHaveCommasAndQuotes) {
  const std::string line = "\"size, \"\"in\"\"\", w.\xC3\xBC \n";
  ASSERT_EQ(read(line + "7,a\n", {{"w.\xC3\xBC", ValueKind::kBytes}, {"size, \"in\"", ValueKind::kInteger}}), "");
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("a"));
  EXPECT_THAT(table_.columns[1].integers, ElementsAre(7));
  EXPECT_THAT(read(line + "7,a\n"), HasSubstr("which has 2 columns: 'size, \"in\"', 'w.\xC3\xBC'"));
}

TEST_F(CsvRows, OnlySomeRowsAreDecoded) {
  ASSERT_EQ(read("w,x\na,1\nb,2\nc,3\n"), "");
  RecordBlock rows = block_of(content_);
  rows.bytes = rows.bytes.subspan(header_.bytes);
  ASSERT_TRUE(decode_csv_rows(rows, std::span(places_).subspan(1, 1), header_, kWanted, table_));
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("b"));
}

TEST_F(CsvRows, WrongOnesAreRefusedWithLineAndColumn) {
  EXPECT_EQ(
      read("w,x\na,1\n\nb,two\n"),
      "x:4: 'two' in column 'x', expected a finite number: correct the record, add the word to data.missing, or give "
      "the column the kind \"category\"");
  EXPECT_THAT(read("w,x\na,1,2\n"), HasSubstr("x:2: 3 fields, expected 2 as on line 1"));
  EXPECT_THAT(read("w,x\na\n"), HasSubstr("x:2: 1 fields, expected 2"));
  EXPECT_THAT(read("w,x\n\"a\"\n"), HasSubstr("x:2: 1 fields, expected 2"));
  EXPECT_THAT(read("w,x\na" + std::string(1000, ',') + "\n"), HasSubstr("x:2: 1001 fields, expected 2"));
  EXPECT_THAT(read("\nw,y\n"), HasSubstr("x:2: no column 'x' in the first line, which has 2 columns: 'w', 'y'"));
  EXPECT_EQ(read("w,x,x\na,1,2\n"), "x:1: two columns 'x' in the first line: rename one of them");
  EXPECT_EQ(read("w,x,y,y\na,1,2,2\n"), "") << "y isn't used";
  EXPECT_THAT(read("w,x\n\"a\"b,1\n"), HasSubstr("x:2: text after the closing quote"));
  EXPECT_THAT(read("w,x\na,1\n5\" pipe,1\n"), HasSubstr("x:3: a quote within the field '5'"));
  EXPECT_THAT(read("w,x\na,1\n\"b,1\n"), HasSubstr("x:3: a quoted field isn't closed"));
  EXPECT_THAT(read("\"w,x\n"), HasSubstr("x:1: a quoted field isn't closed"));
  EXPECT_THAT(read("w,x\n\"a,1\nb\",\"" + std::string(kMaxCsvRecordBytes, 'c')),
              HasSubstr("x:2: a record of more than"));
}

TEST_F(CsvRows, LinesThatEndInCrAloneAreRefused) {
  EXPECT_THAT(read("\nw,x\ra,1\rb,2\r"), HasSubstr(":2: a line that ends in CR alone, expected LF or CRLF"));
  EXPECT_THAT(read("a,1\rb,2\r", {{"0", ValueKind::kBytes}}, false), HasSubstr(":1: a line that ends in CR alone"));
  EXPECT_EQ(read("\"w\", x \r\r\na,1\r\n", kWanted), "");
}

TEST_F(CsvRows, UnknownLineIsReplacedByTheRecord) {
  ASSERT_EQ(read("w,x\na,1\n"), "");
  const std::string content = "a,1\nb,c\n";
  RecordBlock rows = block_of(content);
  rows.first_line = 0;
  ASSERT_TRUE(find_csv_rows(rows, places_));
  EXPECT_THAT(error_of(decode_csv_rows(rows, places_, header_, kWanted, table_)),
              HasSubstr("data file \"x\", record 11: 'c' in column 'x'"));
}

TEST_F(CsvRows, HeaderMayNeedALongerBlock) {
  const std::string content = "\n\nw,x";
  for (std::size_t bytes = 0; bytes <= content.size(); ++bytes) {
    const std::string part = content.substr(0, bytes);
    const auto header = read_csv_header(block_of(part, false), kWanted, true);
    ASSERT_TRUE(header.has_value());
    EXPECT_FALSE(header->has_value()) << bytes;
  }
  EXPECT_EQ(read_csv_header(block_of(content), kWanted, true)->value().bytes, content.size());
  EXPECT_EQ(read_csv_header(block_of("\n"), kWanted, true)->value().fields, 0U);
}

TEST_F(CsvRows, BlankLinesBeforeTheHeaderHaveALimit) {
  const std::string most(kMaxCsvRecordBytes - 1, '\n');
  const std::string good = most + "w,x\na,1\n";
  EXPECT_EQ(read_csv_header(block_of(good), kWanted, true)->value().fields, 2U);
  EXPECT_FALSE(read_csv_header(block_of(most, false), kWanted, true)->has_value());
  for (const std::string begin : {"", "\xEF\xBB\xBF"})
    for (const std::string more : {"\n", "\nw,x\na,1\n"})
      for (const bool is_last : {false, true}) {
        const std::string content = begin + most + more;
        EXPECT_THAT(error_of(read_csv_header(block_of(content, is_last), kWanted, true)),
                    HasSubstr(" bytes of blank lines, expected a line with text before"));
      }
}

// The naive twin of find_csv_rows(): a state for each byte.
std::vector<std::string> rows_of(const std::string& text, bool is_last) {
  std::vector<std::string> rows;
  std::string row;
  bool within = false;
  for (const char c : text) {
    if (c == '"') within = !within;
    if (c == '\n' && !within) {
      if (row.ends_with('\r')) row.pop_back();
      if (row.find_first_not_of(" \r") != std::string::npos) rows.push_back(row);
      row.clear();
    } else {
      row += c;
    }
  }
  if (is_last && row.ends_with('\r')) row.pop_back();
  if (is_last && row.find_first_not_of(" \r") != std::string::npos) rows.push_back(row);
  return rows;
}

TEST(CsvRowsTwin, RowsAreThoseOfTheTwin) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    std::string text;
    const std::uint64_t size = random.below(400);
    const std::string alphabet = random.below(2) == 0 ? "ab,,\n" : "abcdefgh,,,\n\r \"\"";
    for (std::uint64_t i = 0; i < size; ++i) text += alphabet[random.below(alphabet.size())];
    for (const bool is_last : {false, true}) {
      if (is_last && std::count(text.begin(), text.end(), '"') % 2 != 0) text += '"';
      std::vector<RecordPlace> places;
      const RecordBlock block = block_of(text, is_last);
      const auto covered = find_csv_rows(block, places);
      ASSERT_TRUE(covered) << "seed " << seed;
      ASSERT_EQ(texts_of(block, places), rows_of(text, is_last)) << "seed " << seed;
    }
  }
}

// Random tables, written as csv and read again. Long fields cross the 64 bytes that the reader looks at.
TEST(CsvRowsTwin, WrittenFieldsAreReadAgain) {
  const std::vector<WantedColumn> wanted = {
      {"0", ValueKind::kBytes}, {"2", ValueKind::kBytes}, {"1", ValueKind::kFloat}};
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    std::string text;
    std::vector<std::string> words[2];
    std::vector<float> numbers;
    for (std::uint64_t r = 0; r < 1 + random.below(8); ++r) {
      for (auto& column : words) {
        std::string word(random.below(90), 'w');
        for (char& c : word) c = "xyz\",\n"[random.below(random.below(3) == 0 ? 6 : 3)];
        column.push_back(word);
      }
      numbers.push_back(static_cast<float>(random.below(1000)) / 8 - 50);
      const auto written = [](const std::string& word) {
        if (word.find_first_of("\",\n") == std::string::npos) return word;
        std::string out = "\"";
        for (const char c : word) out += c == '"' ? "\"\"" : std::string(1, c);
        return out + "\"";
      };
      text += written(words[0].back()) + "," + std::to_string(numbers.back()) + "," + written(words[1].back()) + "\n";
    }
    const RecordBlock block = block_of(text);
    const auto header = read_csv_header(block, wanted, false);
    ASSERT_TRUE(header.has_value()) << header.error().message;
    std::vector<RecordPlace> places;
    ASSERT_TRUE(find_csv_rows(block, places));
    Table table;
    const auto decoded = decode_csv_rows(block, places, header->value(), wanted, table);
    ASSERT_TRUE(decoded) << "seed " << seed << ": " << decoded.error().message;
    for (std::size_t w = 0; w < 2; ++w) {
      ASSERT_EQ(table.columns[w].bytes.size(), words[w].size()) << "seed " << seed;
      for (std::size_t r = 0; r < words[w].size(); ++r)
        ASSERT_EQ(table.columns[w].bytes[r], words[w][r]) << "seed " << seed;
    }
    ASSERT_EQ(table.columns[2].floats, numbers) << "seed " << seed;
  }
}

}  // namespace
}  // namespace disttrain::input
