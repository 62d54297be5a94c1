// Timestamps of the type INT96, which Spark, Hive and Impala write: a day and the nanoseconds since its begin. Arrow
// makes nanoseconds since 1970 of them, in 64 bits. It lets those of other years wrap without an error, so they are
// looked for before.
#pragma once

#include <parquet/column_reader.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/result.h"

namespace disttrain::input {

// A timestamp before 1677-09-21 or after 2262-04-11.
struct FarTimestamp {
  std::uint64_t record = 0;  // of the row group
  std::string day;           // "9999-12-31"
};

// Reads a whole column of INT96 of a row group, and returns the first far timestamp. Throws parquet::ParquetException
// if the file is damaged. Fails with kTemporary if is_cancelled(), which may be empty, returns true.
Result<std::optional<FarTimestamp>> find_far_timestamp(parquet::ColumnReader& column,
                                                       const std::function<bool()>& is_cancelled);

}  // namespace disttrain::input
