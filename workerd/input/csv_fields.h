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
  std::string_view text;  // without blanks and quotes around it
  bool is_quoted = false;
  bool has_doubled_quotes = false;  // within `text`; each of them stands for one quote
};

// What is wrong with the row, and the byte of the row at which the field begins.
struct CsvProblem {
  std::string what;
  std::size_t at = 0;
};

// Replaces `fields`. Returns nothing if the row is valid and has at most kMaxCsvFields.
std::optional<CsvProblem> split_csv_row(std::string_view row, std::vector<CsvField>& fields);

// Removes the blanks around the text: spaces, tabs and CR.
inline std::string_view without_blanks(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace disttrain::input
