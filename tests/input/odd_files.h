// Files as people bring them. Each gives the right values, or one sentence with the file, the line or record, and the
// column.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "input/parquet/parquet_functions.h"
#include "tests/input/all_formats.h"

namespace disttrain::input {

struct Odd {
  std::string what;
  std::string content;
  // The values as "inputs / categories / labels", or "!" and the parts that the error has, with "|" between them.
  std::string expected;
};

inline std::string shown(const Given& given) {
  std::ostringstream out;
  const auto list = [&out](const auto& values) {
    for (std::size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : " ") << values[i];
  };
  list(given.inputs);
  out << " / ";
  list(given.categories);
  out << " / ";
  list(given.classes);
  list(given.targets);
  return out.str();
}

// A number "x", a category "c" of red (1) and green (2), and a label "y".
inline std::vector<ColumnSection> usual_columns() {
  ColumnSection category = column_section("c", ColumnKind::kCategory);
  category.vocabulary = {"red", "green"};
  return {column_section("x", ColumnKind::kNumeric), category, column_section("y", ColumnKind::kLabel)};
}

inline void expect_given(const Given& given, const std::string& expected, const std::string& what) {
  SCOPED_TRACE(what);
  if (!expected.starts_with("!")) {
    EXPECT_EQ(given.error, "");
    EXPECT_EQ(shown(given), expected);
    return;
  }
  ASSERT_NE(given.error, "") << shown(given);
  EXPECT_LT(given.error.size(), 1000U) << given.error;
  EXPECT_EQ(given.error.find('\n'), std::string::npos) << given.error;
  std::istringstream parts(expected.substr(1));
  for (std::string part; std::getline(parts, part, '|');) EXPECT_THAT(given.error, testing::HasSubstr(part));
}

// Reads each file into memory, and again for each batch.
inline void expect_odd(DataFormat format, const std::vector<Odd>& files, std::size_t count,
                       const std::vector<ColumnSection>& columns = usual_columns()) {
  EXPECT_GE(files.size(), count);
  const Folder folder;
  for (const Odd& odd : files) {
    folder.write("odd", odd.content);
    Source source = input::source(format, folder, "odd");
    source.columns = columns;
    source.missing = {"?"};
    source.parquet = &parquet_functions();
    source.memory = std::uint64_t{1} << 30;
    const Given in_memory = given_of(load_dataset(source));
    expect_given(in_memory, odd.expected, odd.what);
    source.memory = 1;
    const Given streamed = given_of(load_dataset(source));
    EXPECT_EQ(streamed.error.empty(), in_memory.error.empty()) << odd.what << ": " << streamed.error;
    if (in_memory.error.empty()) {
      EXPECT_EQ(shown(streamed), shown(in_memory)) << odd.what;
    }
  }
}

}  // namespace disttrain::input
