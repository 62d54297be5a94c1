// Opens Parquet files for load_dataset() (Source::parquet).
#pragma once

#include <memory>
#include <string>

#include "common/result.h"
#include "input/dataset.h"
#include "input/table_reader.h"

namespace disttrain::input {

// Errors: those of ParquetFile::open().
Result<std::unique_ptr<TableReader>> open_parquet_tables(const Source& source, const std::string& path);

}  // namespace disttrain::input
