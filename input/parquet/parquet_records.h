// Reads the records of Parquet files for StreamedDataset. A row group is a block. The footers of the files say how many
// records each row group has, so no index is needed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "input/record_source.h"

namespace disttrain::input {

// Reads the footers of the files, several at a time. Errors: those of ParquetFile::open(); kData: a file has no record.
Result<std::unique_ptr<RecordSource>> open_parquet_records(const Source& source, const std::vector<std::string>& paths);

}  // namespace disttrain::input
