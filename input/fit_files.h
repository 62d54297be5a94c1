// Reads all files of a training set once, to find what [data.columns] and data.bucket_by take from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "input/columns.h"
#include "input/dataset.h"

namespace disttrain::input {

struct FittedFiles {
  FittedColumns columns;
  std::vector<std::uint32_t> lengths;  // Dataset::lengths()
};

// Whether the lengths of the column source.bucket_by are wanted. A data set in memory finds them by itself.
enum class FindLengths : std::uint8_t { kNo, kYes };

// `paths` are the files of the source, in order. Only its records [source.begin, source.end) count; end = 0: all.
// Reads tokenizers, and all files if anything must be found in them. Errors: those of TableReader, ColumnFit,
// load_tokenizers() and encode_tokens().
Result<FittedFiles> fit_files(const Source& source, const std::vector<std::string>& paths, FindLengths find_lengths);

}  // namespace disttrain::input
