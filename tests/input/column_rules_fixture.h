// For the tests that hold the table of docs/data.md, "What becomes of a value": the same records, written in each
// format, give the same batches or the same error, whether they are read into memory or for each batch.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "input/parquet/parquet_functions.h"
#include "tests/input/all_formats.h"

namespace disttrain::input {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr std::size_t kCell = 1;  // the record with the value of a test

inline ColumnSection numeric(const std::string& name = "a") {
  return column_section(name, ColumnKind::kNumeric);
}
inline ColumnSection numeric_or(double missing) {
  ColumnSection section = numeric();
  section.missing = missing;
  return section;
}
inline ColumnSection category(const std::vector<std::string>& vocabulary = {}) {
  ColumnSection section = column_section("a", ColumnKind::kCategory);
  section.vocabulary = vocabulary;
  return section;
}
inline ColumnSection hashed() {
  ColumnSection section = category();
  section.hash = 1000;
  return section;
}
inline ColumnSection label(const std::vector<std::string>& vocabulary = {}) {
  ColumnSection section = column_section("a", ColumnKind::kLabel);
  section.vocabulary = vocabulary;
  return section;
}
inline ColumnSection bytes(std::uint32_t length, std::uint32_t limit = 0) {
  ColumnSection section = column_section("a", ColumnKind::kBytes);
  section.length = length;
  section.limit = limit;
  section.truncate = Truncate::kNone;
  return section;
}
inline ColumnSection tokens() {
  ColumnSection section = column_section("a", ColumnKind::kTokens);
  section.limit = 100;
  section.length = 3;
  section.truncate = Truncate::kNone;
  return section;
}

// Three records with a column "a", the second of which has the value of the test.
class ColumnRules : public testing::TestWithParam<DataFormat> {
 protected:
  static DataFormat format() { return GetParam(); }

  Source source_of(const std::vector<ColumnSection>& columns, std::uint64_t memory) const {
    Source source = input::source(format(), folder_, "file");
    source.columns = columns;
    source.missing = missing_;
    source.memory = memory;
    source.parquet = &parquet_functions();
    return source;
  }

  // Returns the values of the records, or their error. The error is the same in memory and streamed, except that a
  // check of all records can't name the line.
  Given read(const ColumnSection& section, const std::vector<Record>& records) {
    std::vector<ColumnSection> columns = {section};
    write_records(format(), folder_ / "file", records);
    columns.push_back(numeric("key"));
    if (section.kind != ColumnKind::kLabel) columns.push_back(column_section("y", ColumnKind::kLabel));
    Given given = given_of(load_dataset(source_of(columns, std::uint64_t{1} << 30)));
    if (format() == DataFormat::kParquet) return given;  // is never read into memory
    const Given streamed = given_of(load_dataset(source_of(columns, 1)));
    EXPECT_EQ(streamed.error.empty(), given.error.empty()) << streamed.error << given.error;
    EXPECT_EQ(streamed.inputs, given.inputs);
    EXPECT_EQ(streamed.categories, given.categories);
    EXPECT_EQ(streamed.classes, given.classes);
    EXPECT_EQ(streamed.targets, given.targets);
    EXPECT_EQ(streamed.weights, given.weights);
    EXPECT_EQ(streamed.tokens, given.tokens);
    return given;
  }
  Given read(const ColumnSection& section, const Cell& before, const Cell& cell, const Cell& after) {
    const auto record = [](const Cell& value) {
      return Record{{"a", value}, {"key", std::int64_t{0}}, {"y", std::int64_t{1}}};
    };
    return read(section, {record(before), record(cell), record(after)});
  }

  // The error names the file, the record or its line, and the column, and says `what`.
  void expect_refused(const Given& given, const std::string& what) const {
    SCOPED_TRACE(given.error);
    EXPECT_THAT(given.error, testing::HasSubstr("file"));
    EXPECT_THAT(given.error, testing::HasSubstr("column 'a'"));
    EXPECT_THAT(given.error, testing::HasSubstr(what));
    EXPECT_THAT(given.error, testing::ContainsRegex("(file:3|file\", record 1)"));
  }

  void expect_number(const ColumnSection& section, const Cell& cell, float expected, const Cell& other = 2.5) {
    const Given given = read(section, other, cell, other);
    ASSERT_EQ(given.error, "");
    EXPECT_EQ(given.inputs[2 * kCell], expected);
  }
  void expect_number_refused(const ColumnSection& section, const Cell& cell, const std::string& what,
                             const Cell& other = 2.5) {
    expect_refused(read(section, other, cell, other), what);
  }
  // The category of the cell is that of the word, and another one than that of "other".
  void expect_word(const Cell& cell, const std::string& word, const Cell& other = std::string("other")) {
    for (const ColumnSection& section : {category(), category({"other", word}), hashed()}) {
      const Given given = read(section, other, cell, std::string(word));
      ASSERT_EQ(given.error, "") << plain_text(cell);
      EXPECT_EQ(given.categories[kCell], given.categories[2]) << plain_text(cell);
      EXPECT_NE(given.categories[kCell], given.categories[0]) << plain_text(cell);
    }
  }

  Folder folder_;
  std::vector<std::string> missing_ = {"?"};
};

}  // namespace disttrain::input
