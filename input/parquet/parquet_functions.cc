#include "input/parquet/parquet_functions.h"

#include "input/parquet/parquet_records.h"
#include "input/parquet/parquet_tables.h"

namespace disttrain::input {

const ParquetFunctions& parquet_functions() {
  static constexpr ParquetFunctions kFunctions = {.open_tables = open_parquet_tables,
                                                  .open_records = open_parquet_records};
  return kFunctions;
}

}  // namespace disttrain::input
