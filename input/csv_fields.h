// Splits one row of a csv file into its fields, with all rules about quotes. Rows without quotes have a faster way in
// csv_rows.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace disttrain::input {

inline constexpr std::size_t kMaxCsvFields = 1 << 20;

struct CsvField {
  std::string_view text;  // without quotes, and spaces and tabs outside of them
  bool is_quoted = false;
  bool has_doubled_quotes = false;  // within `text`; each of them stands for one quote
};

// What is wrong with the row, and the byte of the row at which the field begins.
struct CsvProblem {
  std::string what;
  std::size_t at = 0;
};

// Removes the spaces, tabs and CR that a row may have around a field. Other blanks belong to the field: the kind of its
// column says what becomes of them (column_text.h).
inline std::string_view without_spaces(std::string_view field) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!field.empty() && is_space(field.front())) field.remove_prefix(1);
  while (!field.empty() && is_space(field.back())) field.remove_suffix(1);
  return field;
}

// Says what is wrong with the first row of a file whose lines end in CR alone, as old programs for the Mac write them.
// The whole file then looks like one row. Nothing if the row isn't of that kind.
std::optional<std::string> wrong_line_ends(std::string_view first_row);

// Replaces `fields`. Returns nothing if the row is valid and has at most kMaxCsvFields.
std::optional<CsvProblem> split_csv_row(std::string_view row, std::vector<CsvField>& fields);

}  // namespace disttrain::input
