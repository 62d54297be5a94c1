#include "input/csv_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "input/byte_masks.h"
#include "input/column_text.h"
#include "input/csv_fields.h"
#include "input/lines.h"
#include "input/number_text.h"

namespace disttrain::input {

namespace {

tl::unexpected<Error> bad_row(const RecordBlock& block, std::uint64_t record, std::size_t begin,
                              const std::string& what) {
  return fail(ErrorCode::kData, place_of(block, record, begin) + ": " + what);
}

// Copies the text of a quoted field with one quote for each doubled one. Returns the number of characters.
std::size_t copy_single_quotes(std::string_view text, char* to) {
  char* out = to;
  for (std::size_t i = 0; i < text.size(); ++i) {
    *out++ = text[i];
    if (text[i] == '"') ++i;
  }
  return static_cast<std::size_t>(out - to);
}

// The columns' names in a header line.
std::vector<std::string> names_of(const std::vector<CsvField>& fields) {
  std::vector<std::string> names;
  names.reserve(fields.size());
  for (const CsvField& field : fields) {
    std::string& name = names.emplace_back(field.is_quoted ? field.text : without_blanks(field.text));
    if (field.has_doubled_quotes) name.resize(copy_single_quotes(field.text, name.data()));
  }
  return names;
}

// The rest of a block in which a row doesn't end. If a quote is at a wrong place, the row seems to go on behind it.
tl::unexpected<Error> endless(const RecordBlock& block, std::uint64_t record, std::size_t begin) {
  std::vector<CsvField> fields;
  const std::string_view rest = text_at(block, {begin, block.bytes.size() - begin});
  const std::optional<CsvProblem> problem = split_csv_row(rest.substr(0, kMaxCsvRecordBytes), fields);
  if (rest.size() > kMaxCsvRecordBytes && (!problem || problem->what.starts_with("a quoted")))
    return bad_row(block, record, begin,
                   "a record of more than " + std::to_string(kMaxCsvRecordBytes) +
                       " bytes: is a closing quote missing, and is data.format right?");
  return bad_row(block, record, begin, problem ? problem->what : "a quoted field isn't closed: correct the line");
}

// Walks over the line ends of a block that aren't within quotes.
class LineEnds {
 public:
  explicit LineEnds(std::string_view text) : text_(text) {}

  // The place of the next line end; the size of the text behind the last one.
  std::size_t next() {
    while (ends_ == 0) {
      at_ += at_ == kNone ? 1 : kMaskBytes;  // kNone + 1 is 0
      if (at_ >= text_.size()) return text_.size();
      read_masks();
    }
    const auto bit = static_cast<std::size_t>(std::countr_zero(ends_));
    ends_ &= ends_ - 1;
    return at_ + bit;
  }

  // Valid behind the last line end: whether the text ends within quotes.
  bool is_within_quotes() const { return is_within_; }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  void read_masks() {
    const std::size_t left = text_.size() - at_;
    const char* bytes = text_.data() + at_;
    std::array<char, kMaskBytes> tail{};
    if (left < kMaskBytes) {
      std::memcpy(tail.data(), bytes, left);
      bytes = tail.data();
    }
    const std::uint64_t quotes = mask_of(bytes, '"');
    ends_ = mask_of(bytes, '\n');
    if (quotes == 0) {
      if (is_within_) ends_ = 0;
      return;
    }
    const std::uint64_t within = parity_up_to(quotes) ^ (is_within_ ? ~std::uint64_t{0} : 0);
    ends_ &= ~within;
    is_within_ = (within >> 63) != 0;
  }

  std::string_view text_;
  std::size_t at_ = kNone;  // of the 64 bytes to which ends_ belongs
  std::uint64_t ends_ = 0;  // the line ends that next() didn't return yet
  bool is_within_ = false;  // whether the bytes at at_ + 64 begin within quotes
};

// Decodes rows of one block, one after the other.
class RowReader {
 public:
  RowReader(const RecordBlock& block, const CsvHeader& header, const std::vector<WantedColumn>& wanted, Table& table)
      : block_(block),
        header_(header),
        wanted_(wanted),
        table_(table),
        // One row has at most `fields` ends and the 63 of the same mask, before their number is checked.
        ends_(header.fields + kMaskBytes) {}

  Status read(std::size_t r, const RecordPlace& place) {
    const std::string_view row = text_at(block_, place);
    if (!find_commas(place)) return read_quoted(r, place, row);
    if (found_ != header_.fields) return wrong_count(r, place, found_);
    for (std::size_t w = 0; w < wanted_.size(); ++w) {
      const std::size_t c = header_.columns[w];
      const std::size_t begin = c == 0 ? 0 : ends_[c - 1] + 1;
      const std::string_view field = without_spaces(row.substr(begin, ends_[c] - begin));
      if (!take(r, w, field)) return wrong_value(r, place, w, field);
    }
    return {};
  }

 private:
  // Finds the ends of the row's fields. Returns false if the row has quotes.
  bool find_commas(const RecordPlace& place) {
    const char* const row = reinterpret_cast<const char*>(block_.bytes.data()) + place.begin;
    const std::size_t readable = block_.bytes.size() - place.begin;
    found_ = 0;
    for (std::size_t at = 0; at < place.bytes; at += kMaskBytes) {
      const char* bytes = row + at;
      std::array<char, kMaskBytes> tail{};
      if (readable - at < kMaskBytes) {
        std::memcpy(tail.data(), bytes, readable - at);
        bytes = tail.data();
      }
      const std::uint64_t valid = low_bits(place.bytes - at);
      if ((mask_of(bytes, '"') & valid) != 0) return false;
      std::uint64_t commas = mask_of(bytes, ',') & valid;
      if (found_ > header_.fields) {
        found_ += static_cast<std::size_t>(std::popcount(commas));
        continue;
      }
      for (; commas != 0; commas &= commas - 1)
        ends_[found_++] = static_cast<std::uint32_t>(at + static_cast<std::size_t>(std::countr_zero(commas)));
    }
    if (found_ < ends_.size()) ends_[found_] = static_cast<std::uint32_t>(place.bytes);
    ++found_;
    return true;
  }

  Status read_quoted(std::size_t r, const RecordPlace& place, std::string_view row) {
    if (const auto problem = split_csv_row(row, fields_)) return bad_row(block_, r, place.begin, problem->what);
    if (fields_.size() != header_.fields) return wrong_count(r, place, fields_.size());
    for (std::size_t w = 0; w < wanted_.size(); ++w) {
      const CsvField& field = fields_[header_.columns[w]];
      const std::string_view text = field.has_doubled_quotes ? single_quotes(field.text) : field.text;
      if (!take(r, w, text)) return wrong_value(r, place, w, text);
    }
    return {};
  }

  std::string_view single_quotes(std::string_view text) {
    char* const begin = table_.texts.add(text.size());
    return {begin, copy_single_quotes(text, begin)};
  }

  // Writes the value of record r. Returns false if the text can't be one.
  bool take(std::size_t r, std::size_t w, std::string_view field) {
    TableColumn& column = table_.columns[w];
    switch (wanted_[w].kind) {
      case ValueKind::kFloat: {
        const std::optional<float> number = number_of_text(field, wanted_[w].missing);
        column.floats[r] = number.value_or(0.0F);
        return number.has_value();
      }
      case ValueKind::kInteger: {
        const std::optional<std::int64_t> number = integer_in(without_blanks(field));
        column.integers[r] = number.value_or(0);
        return number.has_value();
      }
      case ValueKind::kBytes:
        column.bytes[r] = field;
        return true;
    }
    return false;
  }

  Status wrong_count(std::size_t r, const RecordPlace& place, std::size_t found) const {
    return bad_row(block_, r, place.begin,
                   std::to_string(found) + " fields, expected " + std::to_string(header_.fields) + " as on line " +
                       std::to_string(header_.line) + ": correct the line");
  }

  Status wrong_value(std::size_t r, const RecordPlace& place, std::size_t w, std::string_view field) const {
    const std::string& name = wanted_[w].name;
    const std::string what = wanted_[w].kind == ValueKind::kFloat ? wrong_number(field, name)
                                                                  : shown_text(field) + " in column '" + name +
                                                                        "', expected a whole number: correct the line";
    const bool is_first_line = block_.first_record + r == 0 && header_.rows_line == header_.line;
    return bad_row(
        block_, r, place.begin,
        what + (is_first_line ? "; if the line is a header, call the columns by its names in [data.columns]" : ""));
  }

  const RecordBlock& block_;
  const CsvHeader& header_;
  const std::vector<WantedColumn>& wanted_;
  Table& table_;
  std::vector<std::uint32_t> ends_;  // of the fields of the current row; the first found_ are valid
  std::size_t found_ = 0;
  std::vector<CsvField> fields_;
};

}  // namespace

bool is_csv_column_number(const std::string& name) {
  return !name.empty() && name.size() <= 9 && name.find_first_not_of("0123456789") == std::string::npos;
}

Result<std::optional<CsvHeader>> read_csv_header(const RecordBlock& block, const std::vector<WantedColumn>& wanted,
                                                 bool has_header) {
  CsvHeader header;
  if (Status ok = check_begin(block); !ok) return tl::unexpected(std::move(ok.error()));
  header.bytes = byte_order_mark(block);
  RecordBlock rest = block;
  rest.first_line = 1;
  LineEnds ends(text_at(block, {header.bytes, block.bytes.size() - header.bytes}));
  const std::size_t first = header.bytes;
  std::size_t begin = first;
  std::string_view row;
  for (;;) {
    if (begin >= kMaxCsvRecordBytes)
      return bad_row(rest, 0, begin,
                     "the file begins with " + std::to_string(begin) +
                         " bytes of blank lines, expected a line with text before: is the file damaged, and is "
                         "data.format right?");
    if (begin >= block.bytes.size()) {
      if (!block.is_last) return std::optional<CsvHeader>();
      header.bytes = block.bytes.size();
      return std::optional(header);
    }
    const std::size_t end = first + ends.next();
    if (end - begin > kMaxCsvRecordBytes) return endless(rest, 0, begin);
    if (end == block.bytes.size()) {
      if (!block.is_last) return std::optional<CsvHeader>();
      if (ends.is_within_quotes()) return endless(rest, 0, begin);
    }
    row = text_at(block, {begin, end - begin});
    header.bytes = std::min(end + 1, block.bytes.size());
    if (!is_blank_line(row)) break;
    begin = header.bytes;
  }
  if (const auto wrong = wrong_line_ends(row)) return bad_row(rest, 0, begin, *wrong);
  std::vector<CsvField> fields;
  if (const auto problem = split_csv_row(row, fields)) return bad_row(rest, 0, begin, problem->what);
  header.fields = fields.size();
  header.line = line_at(rest, begin);
  if (!has_header) header.bytes = begin;
  header.rows_line = line_at(rest, header.bytes);
  const std::vector<std::string> names = names_of(fields);
  for (const WantedColumn& column : wanted) {
    std::size_t place = 0;
    if (has_header) {
      const auto found = std::find(names.begin(), names.end(), column.name);
      place = static_cast<std::size_t>(found - names.begin());
      if (found != names.end() && std::find(found + 1, names.end(), column.name) != names.end())
        return bad_row(rest, 0, begin, "two columns '" + column.name + "' in the first line: rename one of them");
    } else {
      std::from_chars(column.name.data(), column.name.data() + column.name.size(), place);
    }
    if (place >= fields.size()) {
      std::string has = std::to_string(fields.size()) + " columns";
      for (std::size_t i = 0; has_header && i < std::min<std::size_t>(fields.size(), 50); ++i)
        has += (i == 0 ? ": " : ", ") + shown_text(names[i]);
      return bad_row(rest, 0, begin,
                     "no column '" + column.name + "' in the first line, which has " + has +
                         ": correct [data.columns] or the file");
    }
    header.columns.push_back(place);
  }
  return std::optional(header);
}

Result<std::size_t> find_csv_rows(const RecordBlock& block, std::vector<RecordPlace>& records) {
  records.clear();
  const std::size_t size = block.bytes.size();
  const std::string_view text = text_at(block, {0, size});
  LineEnds ends(text);
  std::size_t begin = 0;
  while (begin < size) {
    const std::size_t end = ends.next();
    if (end - begin > kMaxCsvRecordBytes) return endless(block, records.size(), begin);
    if (end == size) {
      if (!block.is_last) break;
      if (ends.is_within_quotes()) return endless(block, records.size(), begin);
    }
    const std::size_t bytes = end - begin - (end > begin && text[end - 1] == '\r' ? 1 : 0);
    if (!is_blank_line(text.substr(begin, bytes))) records.push_back({begin, bytes});
    begin = std::min(end + 1, size);
  }
  return begin;
}

Status decode_csv_rows(const RecordBlock& block, std::span<const RecordPlace> records, const CsvHeader& header,
                       const std::vector<WantedColumn>& wanted, Table& table) {
  start_table(wanted, table);
  table.records = records.size();
  for (TableColumn& column : table.columns) {
    if (column.kind == ValueKind::kFloat) column.floats.resize(records.size());
    if (column.kind == ValueKind::kInteger) column.integers.resize(records.size());
    if (column.kind == ValueKind::kBytes) column.bytes.resize(records.size());
  }
  RowReader reader(block, header, wanted, table);
  for (std::size_t r = 0; r < records.size(); ++r)
    if (Status read = reader.read(r, records[r]); !read) return read;
  return {};
}

}  // namespace disttrain::input
