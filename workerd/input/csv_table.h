// Decodes csv files (RFC 4180) into tables, one block of bytes after the other. It reads only the columns that the job
// uses.
//
// The first line is a header with the columns' names, unless all wanted columns are called by their number ("0" is the
// first). Blanks around a field are dropped, and blank lines are skipped. A field in double quotes may contain commas,
// doubled quotes and line ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "workerd/input/csv.h"
#include "workerd/input/file_reader.h"
#include "workerd/input/table.h"

namespace disttrain::input {

class CsvTables {
 public:
  // `missing` has words that mean that a value is missing, beside the empty one. A missing value becomes NaN in a
  // column of floats, and "" in a column of bytes. All arguments must outlive this object.
  CsvTables(FileReader& file, const std::vector<WantedColumn>& wanted, const std::vector<std::string>& missing);

  // Decodes the next records. Returns false after the last record. `table` is valid until the next call. Errors, kData,
  // with file, line and column: a wanted column isn't in the header, a line has another number of fields than the first
  // line, a value isn't a finite number, or quotes are wrong.
  Result<bool> next(Table& table);

  // The line of the file, from 1, on which a record of the last table begins.
  std::uint64_t line_of(std::uint64_t record) const { return lines_[record]; }

 private:
  struct Field {
    char* begin = nullptr;
    char* end = nullptr;
    bool has_quotes = false;  // doubled ones, within a quoted field
    bool is_quoted = false;
  };

  Status refill();
  // Finds the fields of the record that begins at begin_. Returns false if the record doesn't end within the buffer.
  Result<bool> split();
  Status take_header();
  Status check_count() const;
  Status take_record(Table& table);
  Result<float> number_of(std::string_view field, const WantedColumn& wanted) const;
  bool is_missing(std::string_view field) const;
  tl::unexpected<Error> bad(const std::string& what) const;

  FileReader& file_;
  const std::vector<WantedColumn>& wanted_;
  const std::vector<std::string>& missing_;
  const bool has_header_;
  std::vector<char> buffer_;
  char* begin_ = nullptr;  // [begin_, end_) isn't decoded yet; *end_ is a line end
  char* end_ = nullptr;
  bool has_ended_ = false;           // the file has no bytes after end_
  std::uint64_t line_ = 0;           // number of lines before begin_
  std::uint64_t lines_in_next_ = 0;  // of the record that split() found
  std::uint64_t first_line_ = 0;     // line of the header or, without a header, of the first record; 0: not read yet
  std::size_t field_count_ = 0;      // of each record
  std::vector<std::size_t> places_;  // for each wanted column, its place in a record
  std::vector<Field> fields_;
  std::vector<std::uint64_t> lines_;
};

}  // namespace disttrain::input
