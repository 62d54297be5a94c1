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

// Says what is wrong with the first row of a file whose lines end in CR alone, as old programs for the Mac write them.
// The whole file then looks like one row. Nothing if the row isn't of that kind.
std::optional<std::string> wrong_line_ends(std::string_view first_row);

// Replaces `fields`. Returns nothing if the row is valid and has at most kMaxCsvFields.
std::optional<CsvProblem> split_csv_row(std::string_view row, std::vector<CsvField>& fields);

}  // namespace disttrain::input
