// Where the records of a StreamedDataset come from. There are two implementations: IndexedRecords reads files whose
// records an index has found (indexed_records.h), and ParquetRecords reads Parquet files, whose row groups are blocks
// (parquet/parquet_records.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "input/columns.h"
#include "input/data_figures.h"
#include "input/dataset.h"

namespace disttrain::input {

// About as much as a disk reads in 10 ms. Smaller blocks cost seeks, larger ones memory.
inline constexpr std::uint64_t kStreamedBlockBytes = std::uint64_t{4} << 20;

// Reads and encodes records. At most one thread at a time may use an object; it keeps its memory between the calls.
class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // Appends the records [first, first + count) to `rows`. They are of one file, and if RecordSource::needs_blocks(),
  // they are one block. `draw` says how images are changed at random. Errors, which name the file: kData: it is damaged
  // or was changed, or a value is wrong. kNoInput, kNoPermission: it can't be read. `rows` is then unusable.
  virtual Status read(std::uint64_t first, std::uint64_t count, const Draw& draw, EncodedRows& rows) = 0;
};

// All functions may be called from any thread.
class RecordSource {
 public:
  virtual ~RecordSource() = default;

  virtual std::uint64_t records() const = 0;
  // Those of Dataset.
  virtual std::uint64_t hash() const = 0;
  virtual std::string notice() const = 0;

  // Where a record is, for errors: `data file "x", record 7`.
  virtual std::string place_of(std::uint64_t record) const = 0;
  // The number after the last record of the file that has this record.
  virtual std::uint64_t end_of_file(std::uint64_t record) const = 0;

  // The first record of each block of records that are read together: consecutive records of one file, about
  // kStreamedBlockBytes of its content if the source can choose.
  virtual std::vector<std::uint64_t> blocks() const = 0;
  // About the most bytes that the texts of these records can have in a column, because the files have no more for them.
  // The records are of one file. The largest number: only the keys of [data.columns] limit them. Errors, kData: the
  // index was changed.
  virtual Result<std::uint64_t> content_bytes(std::uint64_t first, std::uint64_t count) const = 0;
  // Why records can't be read one by one, for the error "...: REASON"; "" if they can. Then a reader reads any records.
  virtual std::string needs_blocks() const = 0;
  // What a user can do about blocks that are too large, after "raise data.memory or"; "" if nothing.
  virtual std::string smaller_blocks() const = 0;

  // This object, the encoder and the figures must outlive the reader.
  virtual std::unique_ptr<RecordReader> make_reader(const ColumnEncoder& encoder, DataFigures& figures) const = 0;
};

}  // namespace disttrain::input
