// Reads Parquet files with Apache Arrow, row group by row group. Columns of plain numbers come straight from Parquet's
// decoder (plain_column.h), others from arrays of Arrow (arrow_column.h).
//
// Booleans, integers and floats of any width become floats or, if they are whole numbers by their type, integers. Dates
// and times become the integers that the file has, and INT96 nanoseconds since 1970. Strings and binary values become
// bytes, also if they are views or stored by a dictionary, and in a column of bytes so do numbers (number_word()). In a
// column of floats strings become the numbers that they are texts of (number_of_text()). A list gives its elements;
// null in a list becomes NaN in a column of floats. A record in which a column is null has no values there. Structs,
// maps, lists of views, decimals, half floats and extension types are refused. docs/data.md lists all types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "input/parquet/checked_timestamps.h"
#include "input/parquet/file_stamp.h"
#include "input/table.h"

namespace parquet {
class FileMetaData;
}

namespace disttrain::input {

// A file's footer, decoded. Several objects may share it.
using ParquetFooter = std::shared_ptr<parquet::FileMetaData>;

// The options of a reader, and the objects that it shares with other readers. A pointer may be null. The objects must
// outlive the reader.
struct ParquetReading {
  ReadCounts counts = {};
  ParquetFooter footer = nullptr;           // the file's; null: it is read
  CheckedTimestamps* checked = nullptr;     // null: all columns of INT96 are checked
  std::function<bool()> is_cancelled = {};  // called while timestamps are checked; empty: never cancelled
};

// One file may take at most this much memory for decoded values.
inline constexpr std::int64_t kMaxParquetBytes = std::int64_t{4} << 30;
// At most one thread at a time may use an object. Several threads may read the same file by objects of their own.
class ParquetFile {
 public:
  // Reads the file's footer. Errors: those of FileReader::open(); kData: the file isn't a Parquet file, or a wanted
  // column isn't there or has a type that doesn't fit.
  static Result<std::unique_ptr<ParquetFile>> open(const std::string& path, const std::vector<WantedColumn>& wanted,
                                                   ParquetReading reading = {});

  ~ParquetFile();
  ParquetFile(const ParquetFile&) = delete;
  ParquetFile& operator=(const ParquetFile&) = delete;

  // For each row group, its number of records.
  const std::vector<std::uint64_t>& groups() const;
  const std::string& path() const;
  const ParquetFooter& footer() const;
  // The bytes of the footer in the file.
  std::uint64_t footer_bytes() const;
  // Whether the footer says that no record has a value of the wanted column. Some writers leave that out.
  bool is_all_null(std::size_t column) const;
  // Returns the stamp that the file has now.
  FileStamp stamp() const;

  // The next call of next() gives the first records of this row group, in the wanted columns [begin, end). Other
  // columns of the table stay empty. Errors, kData: the file is damaged, or a timestamp of the type INT96 is too far
  // from 1970 (int96.h). kTemporary: is_cancelled() returned true.
  Status start(std::size_t group, std::size_t begin, std::size_t end);
  Status start(std::size_t group);  // all wanted columns

  // Replaces the content of `table` by the next records of the row group. Returns false after its last record. Errors,
  // kData, with file, record and column: the file is damaged, or a text isn't a number where floats are
  // wanted. Strings may have any bytes.
  Result<bool> next(Table& table);

 private:
  class Reader;

  explicit ParquetFile(std::unique_ptr<Reader> reader);

  const std::unique_ptr<Reader> reader_;
};

}  // namespace disttrain::input
