// Reads a column of numbers of a row group by Parquet's decoder, straight into a table. Arrow would make arrays of its
// own, which would have to be copied.
#pragma once

#include <parquet/column_reader.h>
#include <parquet/schema.h>

#include <cstdint>
#include <memory>

#include "input/table.h"

namespace disttrain::input {

// Use it from one thread.
class PlainColumn {
 public:
  // Null if the column isn't plain: it has lists or structs, or its values aren't float, double, int32 or int64 as they
  // are.
  static std::unique_ptr<PlainColumn> make(const parquet::ColumnDescriptor& column);

  virtual ~PlainColumn() = default;

  // The next call of read() gives the first records of this row group's column.
  virtual void start(std::shared_ptr<parquet::ColumnReader> column) = 0;

  // Replaces the values of `to`, whose kind fits, by those of the next `records` records. Text goes into `texts`.
  // Throws parquet::ParquetException if the file is damaged.
  virtual void read(std::uint64_t records, TableColumn& to, Texts& texts) = 0;
};

}  // namespace disttrain::input
