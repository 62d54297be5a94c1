// The functions that read Parquet files for load_dataset() (Source::parquet).
#pragma once

#include "input/dataset.h"

namespace disttrain::input {

const ParquetFunctions& parquet_functions();

}  // namespace disttrain::input
