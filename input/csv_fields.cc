#include "input/csv_fields.h"

#include <algorithm>

#include "input/record_block.h"

namespace disttrain::input {

namespace {

std::size_t skip_spaces(std::string_view row, std::size_t at) {
  return std::min(row.find_first_not_of(" \t\r", at), row.size());
}

}  // namespace

std::optional<std::string> wrong_line_ends(std::string_view first_row) {
  const std::size_t end = first_row.find('\r');
  const bool has_more = end != std::string_view::npos && skip_spaces(first_row, end) < first_row.size();
  // Within quotes a CR may be part of a name.
  if (!has_more || first_row.find('"') < end) return std::nullopt;
  return "a line that ends in CR alone, expected LF or CRLF: convert the file, for example by `tr '\\r' '\\n'`";
}

std::optional<CsvProblem> split_csv_row(std::string_view row, std::vector<CsvField>& fields) {
  fields.clear();
  std::size_t at = 0;
  for (;;) {
    at = skip_spaces(row, at);
    CsvField field;
    if (at < row.size() && row[at] == '"') {
      const std::size_t begin = ++at;
      field.is_quoted = true;
      for (;; at += 2) {
        at = row.find('"', at);
        if (at == std::string_view::npos) return CsvProblem{"a quoted field isn't closed: correct the line", begin};
        if (at + 1 >= row.size() || row[at + 1] != '"') break;
        field.has_doubled_quotes = true;
      }
      field.text = row.substr(begin, at - begin);
      at = skip_spaces(row, at + 1);
      if (at < row.size() && row[at] != ',')
        return CsvProblem{"text after the closing quote of a field, expected a comma: correct the line", begin};
    } else {
      const std::size_t begin = at;
      at = std::min(row.find_first_of(",\"\n", begin), row.size());
      if (at < row.size() && row[at] == '"')
        return CsvProblem{
            "a quote within the field " + shown_text(row.substr(begin, at - begin)) + ": correct the line", begin};
      if (at < row.size() && row[at] == '\n')
        return CsvProblem{"a line end outside of quotes: correct the line", begin};
      field.text = without_spaces(row.substr(begin, at - begin));
    }
    if (fields.size() == kMaxCsvFields)
      return CsvProblem{"more than " + std::to_string(kMaxCsvFields) + " fields: is data.format right?", at};
    fields.push_back(field);
    if (at >= row.size()) return std::nullopt;
    ++at;
  }
}

}  // namespace disttrain::input
