#include "workerd/input/csv_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

namespace disttrain::input {

namespace {

constexpr std::size_t kBlockBytes = 1 << 20;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// The characters at which an unquoted field may end.
constexpr std::array<bool, 256> kStops = [] {
  std::array<bool, 256> stops{};
  for (const unsigned char c : {',', '\n', '"'}) stops[c] = true;
  return stops;
}();

std::string shown_field(std::string_view text) {
  constexpr std::size_t kMost = 40;
  return "'" + std::string(text.substr(0, kMost)) + (text.size() > kMost ? "...'" : "'");
}

bool is_column_number(const std::string& name) {
  return !name.empty() && name.size() <= 9 && name.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

CsvTables::CsvTables(FileReader& file, const std::vector<WantedColumn>& wanted, const std::vector<std::string>& missing)
    : file_(file),
      wanted_(wanted),
      missing_(missing),
      has_header_(!std::all_of(wanted.begin(), wanted.end(),
                               [](const WantedColumn& column) { return is_column_number(column.name); })),
      buffer_(kBlockBytes + 1) {
  begin_ = end_ = buffer_.data();
}

tl::unexpected<Error> CsvTables::bad(const std::string& what) const {
  return fail(ErrorCode::kData, file_.path() + ":" + std::to_string(line_ + 1) + ": " + what);
}

// Moves the begin of a record to the begin of the buffer, and reads on behind it.
Status CsvTables::refill() {
  const auto kept = static_cast<std::size_t>(end_ - begin_);
  if (kept > kMaxCsvRecordBytes)
    return bad("a record of more than " + std::to_string(kMaxCsvRecordBytes) +
               " bytes: is a closing quote missing, and is data.format right?");
  if (kept > 0 && begin_ != buffer_.data()) std::memmove(buffer_.data(), begin_, kept);
  if (kept * 2 > buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const std::size_t room = buffer_.size() - 1 - kept;
  const Result<std::size_t> got = file_.read(std::as_writable_bytes(std::span(buffer_)).subspan(kept, room));
  if (!got) return tl::unexpected(got.error());
  has_ended_ = *got < room;
  begin_ = buffer_.data();
  end_ = begin_ + kept + *got;
  *end_ = '\n';
  if (line_ == 0 && kept == 0 && *got >= 3 && std::memcmp(begin_, "\xEF\xBB\xBF", 3) == 0) begin_ += 3;
  return {};
}

Result<bool> CsvTables::split() {
  fields_.clear();
  lines_in_next_ = 1;
  char* at = begin_;
  for (;;) {
    while (is_space(*at)) ++at;
    Field field{at, at, false, false};
    if (*at == '"') {
      field.begin = ++at;
      field.is_quoted = true;
      for (;; ++at) {
        at = static_cast<char*>(std::memchr(at, '"', static_cast<std::size_t>(end_ - at)));
        if (at == nullptr || at + 1 > end_ || (at + 1 == end_ && !has_ended_)) {
          if (at == nullptr && has_ended_) return bad("a quoted field isn't closed: correct the line");
          return false;
        }
        if (at[1] != '"' || at + 1 == end_) break;
        field.has_quotes = true;
        ++at;
      }
      field.end = at++;
      lines_in_next_ += static_cast<std::uint64_t>(std::count(field.begin, field.end, '\n'));
      while (is_space(*at)) ++at;
      if (*at != ',' && *at != '\n')
        return bad("text after the closing quote of a field, expected a comma: correct the line");
    } else {
      while (!kStops[static_cast<unsigned char>(*at)]) ++at;
      if (*at == '"') return bad("a quote within the field " + shown_field({field.begin, at}) + ": correct the line");
      field.end = at;
      while (field.end > field.begin && is_space(field.end[-1])) --field.end;
    }
    fields_.push_back(field);
    if (*at == '\n') break;
    ++at;
  }
  if (at == end_ && !has_ended_) return false;
  begin_ = std::min(at + 1, end_);
  return true;
}

// Finds the wanted columns.
Status CsvTables::take_header() {
  first_line_ = line_ + 1;
  field_count_ = fields_.size();
  for (const WantedColumn& wanted : wanted_) {
    std::size_t place = 0;
    if (has_header_) {
      const auto found = std::find_if(fields_.begin(), fields_.end(), [&wanted](const Field& field) {
        return std::string_view(field.begin, field.end) == wanted.name;
      });
      place = static_cast<std::size_t>(found - fields_.begin());
    } else {
      std::from_chars(wanted.name.data(), wanted.name.data() + wanted.name.size(), place);
    }
    if (place >= field_count_) {
      std::string has = std::to_string(field_count_) + " columns";
      for (std::size_t i = 0; has_header_ && i < std::min<std::size_t>(field_count_, 50); ++i)
        has += (i == 0 ? ": " : ", ") + shown_field({fields_[i].begin, fields_[i].end});
      return bad("no column '" + wanted.name + "' in the first line, which has " + has +
                 ": correct [data.columns] or the file");
    }
    places_.push_back(place);
  }
  return {};
}

Status CsvTables::check_count() const {
  if (fields_.size() == field_count_) return {};
  return bad(std::to_string(fields_.size()) + " fields, expected " + std::to_string(field_count_) + " as on line " +
             std::to_string(first_line_) + ": correct the line");
}

bool CsvTables::is_missing(std::string_view field) const {
  if (field.empty()) return true;
  for (const std::string& word : missing_)
    if (field == word) return true;
  return false;
}

Result<float> CsvTables::number_of(std::string_view field, const WantedColumn& wanted) const {
  if (is_missing(field)) return std::numeric_limits<float>::quiet_NaN();
  const std::string_view digits = field[0] == '+' ? field.substr(1) : field;
  float value = 0.0F;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  // A float64 can hold numbers that are too close to 0 for a float32. These become 0.
  if (error == std::errc::result_out_of_range) {
    double wide = 0.0;
    error = std::from_chars(digits.data(), digits.data() + digits.size(), wide).ec;
    value = std::abs(wide) < 1.0 ? 0.0F : std::numeric_limits<float>::infinity();
  }
  if (error == std::errc() && end == digits.data() + digits.size() && std::isfinite(value)) return value;
  return bad(shown_field(field) + " in column '" + wanted.name +
             "', expected a finite number: correct the line, add the word to data.missing, or give data.columns." +
             wanted.name + " the kind \"category\"");
}

Status CsvTables::take_record(Table& table) {
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    Field& field = fields_[places_[i]];
    if (field.has_quotes) {
      field.end = std::unique(field.begin, field.end, [](char a, char b) { return a == '"' && b == '"'; });
      field.has_quotes = false;
    }
    const std::string_view text(field.begin, field.end);
    TableColumn& column = table.columns[i];
    if (wanted_[i].kind == ValueKind::kFloat) {
      const Result<float> number = number_of(text, wanted_[i]);
      if (!number) return tl::unexpected(number.error());
      column.floats.push_back(*number);
    } else {
      column.bytes.push_back(is_missing(text) ? std::string_view() : text);
    }
  }
  lines_.push_back(line_ + 1);
  ++table.records;
  return {};
}

Result<bool> CsvTables::next(Table& table) {
  table.records = 0;
  table.columns.resize(wanted_.size());
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    table.columns[i].kind = wanted_[i].kind;
    table.columns[i].floats.clear();
    table.columns[i].bytes.clear();
  }
  lines_.clear();
  while (table.records == 0) {
    if (has_ended_ && begin_ == end_) return false;
    if (Status read = refill(); !read) return tl::unexpected(read.error());
    while (begin_ != end_) {
      const Result<bool> is_whole = split();
      if (!is_whole.has_value()) return tl::unexpected(is_whole.error());
      if (!*is_whole) break;
      const bool is_blank_line = fields_.size() == 1 && fields_[0].begin == fields_[0].end && !fields_[0].is_quoted;
      if (!is_blank_line) {
        const bool is_first = first_line_ == 0;
        Status taken = is_first ? take_header() : check_count();
        if (taken && !(is_first && has_header_)) taken = take_record(table);
        if (!taken) return tl::unexpected(taken.error());
      }
      line_ += lines_in_next_;
    }
  }
  return true;
}

}  // namespace disttrain::input
