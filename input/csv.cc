#include "input/csv.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "input/column_text.h"
#include "input/csv_fields.h"
#include "input/number_text.h"
#include "input/probability.h"
#include "input/record_block.h"

namespace disttrain::input {

namespace {

// Whether the character may stand between a comma and a quote.
bool is_csv_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// Divides a stream of text into records. A record is one line, or several lines if a quoted field contains line ends.
class CsvRecordReader {
 public:
  explicit CsvRecordReader(ByteSource& file)
      : file_(file), chunk_(std::min<std::uint64_t>(kMostChunkBytes, file.most_content_bytes() + 1)) {}

  // Returns the next record, or nothing at the end of the file. The view is valid until the next call.
  Result<std::optional<std::string_view>> next() {
    record_.clear();
    first_line_ = line_ + 1;
    bool in_quotes = false;
    for (;;) {
      if (begin_ == end_) {
        const Result<std::size_t> got = file_.read(std::as_writable_bytes(std::span(chunk_)));
        if (!got) return tl::unexpected(got.error());
        begin_ = 0;
        end_ = *got;
        if (*got == 0) break;
      }
      const char* from = chunk_.data() + begin_;
      const char* newline = std::find(from, static_cast<const char*>(chunk_.data()) + end_, '\n');
      const auto count = static_cast<std::size_t>(newline - from);
      if (record_.size() + count > kMaxCsvRecordBytes) return too_long();
      record_.append(from, count);
      if (std::count(from, newline, '"') % 2 != 0) in_quotes = !in_quotes;
      begin_ += count;
      if (begin_ == end_) continue;  // no newline yet
      ++begin_;
      ++line_;
      if (!in_quotes) return std::optional<std::string_view>(record_);
      record_ += '\n';
    }
    if (record_.empty()) return std::optional<std::string_view>();
    ++line_;
    return std::optional<std::string_view>(record_);
  }

  // Where the record begins, from 1.
  std::uint64_t line() const { return first_line_; }

 private:
  static constexpr std::uint64_t kMostChunkBytes = 256 * 1024;

  tl::unexpected<Error> too_long() const {
    return fail(ErrorCode::kData, file_.path() + ":" + std::to_string(first_line_) + ": a record of more than " +
                                      std::to_string(kMaxCsvRecordBytes) +
                                      " bytes: is a closing quote missing, and is data.format right?");
  }

  ByteSource& file_;
  std::vector<char> chunk_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::string record_;
  std::uint64_t line_ = 0;  // number of lines read
  std::uint64_t first_line_ = 0;
};

// Splits a record into its fields. A field without quotes is a view into the record; a quoted field is a view into
// `unquoted`. Returns what is wrong with the record, or nothing if it is valid.
std::optional<std::string> split(std::string_view record, std::vector<std::string_view>& fields,
                                 std::deque<std::string>& unquoted) {
  fields.clear();
  unquoted.clear();
  std::size_t at = 0;
  for (;;) {
    while (at < record.size() && is_csv_space(record[at])) ++at;
    if (at < record.size() && record[at] == '"') {
      std::string text;
      for (++at;; ++at) {
        if (at >= record.size()) return "a quoted field isn't closed";
        if (record[at] == '"') {
          if (at + 1 >= record.size() || record[at + 1] != '"') break;
          ++at;
        }
        text += record[at];
      }
      ++at;
      while (at < record.size() && is_csv_space(record[at])) ++at;
      if (at < record.size() && record[at] != ',') return "text after the closing quote of a field, expected a comma";
      fields.push_back(without_blanks(unquoted.emplace_back(std::move(text))));
    } else {
      const std::size_t begin = at;
      at = std::min(record.find(',', begin), record.size());
      const std::string_view field = without_blanks(record.substr(begin, at - begin));
      if (field.find('"') != std::string_view::npos) return "a quote within the field " + shown_text(field);
      fields.push_back(field);
    }
    if (at >= record.size()) return std::nullopt;
    ++at;  // the comma
  }
}

// Builds the CsvPart of one file from its records.
class PartBuilder {
 public:
  PartBuilder(ByteSource& file, bool takes_probabilities) : takes_probabilities_(takes_probabilities) {
    part_.path = file.path();
    part_.file_bytes = file.file_bytes();
  }

  Status take(const std::vector<std::string_view>& fields, std::uint64_t line) {
    if (first_line_ == 0) {
      first_line_ = line;
      fields_ = fields.size();
      part_.columns = fields_ - 1;
      if (fields_ < 2)
        return bad(line, "only one field, expected inputs and a label, separated by commas: is data.format right?");
      if (is_header(fields)) {
        part_.header.assign(fields.begin(), fields.end());
        part_.header_line = line;
        return {};
      }
    }
    if (fields.size() != fields_) {
      return bad(line, std::to_string(fields.size()) + " fields, expected " + std::to_string(fields_) + " as on line " +
                           std::to_string(first_line_) + ": correct the line");
    }
    for (std::size_t i = 0; i + 1 < fields_; ++i) {
      const std::optional<double> value = double_in(fields[i]);
      if (!value || std::abs(*value) > std::numeric_limits<float>::max()) return bad_input(fields[i], i, line);
      part_.inputs.push_back(static_cast<float>(*value));
    }
    if (Status taken = take_label(fields.back(), line); !taken) return taken;
    ++part_.records;
    return {};
  }

  Result<CsvPart> finish() {
    if (part_.records == 0) {
      return fail(ErrorCode::kData, part_.path + ": has no records, expected at least one" +
                                        (part_.header.empty() ? "" : " after its header line") +
                                        ": fetch it again or leave it out");
    }
    return std::move(part_);
  }

 private:
  tl::unexpected<Error> bad(std::uint64_t line, const std::string& what) const {
    return fail(ErrorCode::kData, part_.path + ":" + std::to_string(line) + ": " + what);
  }

  tl::unexpected<Error> bad_input(std::string_view field, std::size_t column, std::uint64_t line) const {
    std::string name = "column " + std::to_string(column + 1);
    if (!part_.header.empty()) name += " (" + shown_text(part_.header[column]) + ")";
    return bad(line, (field.empty() ? "nothing" : shown_text(field)) + " in " + name +
                         ", expected a finite number: correct the line, or encode the column as numbers; the label "
                         "must be the last column" +
                         if_header(line));
  }

  // What to do about a line that may be a header, although it is read as a record.
  std::string if_header(std::uint64_t line) const {
    return line == first_line_ ? "; if the line is a header, remove it, or name all its columns by words" : "";
  }

  static bool is_header(const std::vector<std::string_view>& fields) {
    const auto is_number_or_empty = [](std::string_view field) { return number_of_text(field, {}).has_value(); };
    return std::none_of(fields.begin(), fields.end() - 1, is_number_or_empty) &&
           (fields.back().empty() || !is_number_or_empty(fields.back()));
  }

  Status take_label(std::string_view field, std::uint64_t line) {
    if (is_missing(field, {}))
      return bad(line, "no label in the last column, expected a number or a class's name" + if_header(line));
    const std::optional<double> value = double_in(field);
    if (is_infinity(field))
      return bad(line, "the label " + shown_text(field) + " is infinite, expected a finite number" + if_header(line));
    if (const auto wrong = wrong_bytes(field); wrong && !value) return bad(line, "the label " + *wrong);
    CsvLabels& labels = part_.labels;
    const bool text = part_.records == 0 ? !value : labels.numbers.empty();
    if (text != !value) {
      return bad(line,
                 "the label " + shown_text(field) + " is " + (value ? "a number" : "text") + ", expected " +
                     (text ? "text" : "a number") + " as on line " + std::to_string(labels.lines.front()) +
                     (part_.header.empty()
                          ? " (the first line isn't read as a header, because a header's columns must all be text)"
                          : ""));
    }
    if (value) {
      // This number would be infinite as a float32. It can't be a class either, because classes are below 2^53.
      if (std::abs(*value) > std::numeric_limits<float>::max())
        return bad(line, "the label " + shown_text(field) + " is too large for float32: scale the labels");
      if (takes_probabilities_ && !is_probability(*value)) return bad(line, wrong_probability_in_csv(field));
      if (labels.lines.empty()) labels.lines.push_back(line);
      labels.numbers.push_back(*value);
      return {};
    }
    auto known = codes_.find(field);
    if (known == codes_.end()) {
      if (labels.names.size() == kMaxTextLabels) {
        return bad(line, "more than " + std::to_string(kMaxTextLabels) +
                             " different labels: is the label in the last column?");
      }
      known = codes_.emplace(std::string(field), static_cast<std::uint32_t>(labels.names.size())).first;
      labels.names.emplace_back(field);
      labels.lines.push_back(line);
    }
    labels.codes.push_back(known->second);
    return {};
  }

  const bool takes_probabilities_;
  CsvPart part_;
  std::uint64_t first_line_ = 0;  // line of the header or, without a header, of the first record; 0: not read yet
  std::size_t fields_ = 0;
  std::map<std::string, std::uint32_t, std::less<>> codes_;
};

}  // namespace

Result<CsvPart> read_csv(ByteSource& file, bool takes_probabilities) {
  CsvRecordReader reader(file);
  PartBuilder builder(file, takes_probabilities);
  std::vector<std::string_view> fields;
  std::deque<std::string> unquoted;
  bool has_rows = false;
  for (bool first = true;; first = false) {
    const Result<std::optional<std::string_view>> next = reader.next();
    if (!next.has_value()) return tl::unexpected(next.error());
    if (!next->has_value()) return builder.finish();
    std::string_view record = **next;
    if (first && (record.starts_with("\xFF\xFE") || record.starts_with("\xFE\xFF")))
      return fail(ErrorCode::kData, file.path() +
                                        ": begins as a text in UTF-16, expected UTF-8: convert it, for example by "
                                        "`iconv -f UTF-16 -t UTF-8`");
    if (first && record.substr(0, 3) == "\xEF\xBB\xBF") record.remove_prefix(3);  // UTF-8 byte order mark
    if (std::all_of(record.begin(), record.end(), is_csv_space)) continue;
    if (!std::exchange(has_rows, true))
      if (const auto wrong = wrong_line_ends(record))
        return fail(ErrorCode::kData, file.path() + ":" + std::to_string(reader.line()) + ": " + *wrong);
    if (const std::optional<std::string> wrong = split(record, fields, unquoted)) {
      return fail(ErrorCode::kData,
                  file.path() + ":" + std::to_string(reader.line()) + ": " + *wrong + ": correct the line");
    }
    if (Status taken = builder.take(fields, reader.line()); !taken) return tl::unexpected(taken.error());
  }
}

}  // namespace disttrain::input
