// Reads all files of a training set once, to find what [data.columns] takes from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "workerd/input/columns.h"
#include "workerd/input/dataset.h"

namespace disttrain::input {

// `paths` are the files of the source, in order. Only its records [source.begin, source.end) count; end = 0: all.
// Errors: those of TableReader and ColumnFit.
Result<FittedColumns> fit_files(const Source& source, const std::vector<std::string>& paths);

}  // namespace disttrain::input
