// Decodes csv files (RFC 4180) by blocks. Only the columns that the job uses are decoded.
//
// The first line is a header with the columns' names, unless all columns of the job are called by their number ("0" is
// the first). Spaces and tabs around a field are dropped, and blank lines are skipped. A field in double quotes may
// contain commas, doubled quotes and line ends. So only the begin of the file says where a row begins, and a block must
// begin with one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "input/csv.h"
#include "input/record_block.h"
#include "input/table.h"

namespace disttrain::input {

inline constexpr std::size_t kMostCsvHeaderBytes = 2 * kMaxCsvRecordBytes;  // with blank lines before it

// What the first line says about the rows of a file.
struct CsvHeader {
  std::size_t bytes = 0;             // The first block of rows begins here, and on this line, from 1.
  std::uint64_t rows_line = 1;       //
  std::uint64_t line = 1;            // of the header or, without a header, of the first row
  std::size_t fields = 0;            // of each row; 0: the file has no rows
  std::vector<std::size_t> columns;  // for each wanted column, its place in a row, from 0
};

// Whether a column of this name is found by its number, without a header.
bool is_csv_column_number(const std::string& name);

// Reads the header of a block that begins with the file. Without a header line each wanted name is a number. Returns
// nothing if the block has to be longer; one of kMostCsvHeaderBytes is long enough. Errors, kData: a wanted column
// isn't there or is there twice, quotes are wrong, the line or the blank lines before it have more than
// kMaxCsvRecordBytes, or the file is UTF-16.
Result<std::optional<CsvHeader>> read_csv_header(const RecordBlock& block, const std::vector<WantedColumn>& wanted,
                                                 bool has_header);

// Replaces `records` by the places of the whole rows in the block, which lies behind the header. Returns how many bytes
// of the block they cover. It looks only at quotes and line ends. Errors, kData: a row has more than
// kMaxCsvRecordBytes, or the file ends within quotes.
Result<std::size_t> find_csv_rows(const RecordBlock& block, std::vector<RecordPlace>& records);

// Decodes rows of the block and replaces the content of `table`. `records` are from find_csv_rows(block). The text of a
// column of bytes is the field. Errors, kData, with file, line and column: a row has another number of fields than the
// header, a text isn't a number (number_of_text()), or quotes are wrong. `table` is then unusable.
Status decode_csv_rows(const RecordBlock& block, std::span<const RecordPlace> records, const CsvHeader& header,
                       const std::vector<WantedColumn>& wanted, Table& table);

}  // namespace disttrain::input
