// Functions that load_dataset() calls. load_arrays() and load_csv() read all files of a source and join their records.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "input/dataset.h"
#include "input/memory_dataset.h"
#include "input/text_dataset.h"

namespace disttrain::input {

// For idx and npy files. Inputs and labels are in separate files.
Result<Contents> load_arrays(const Source& source);

Result<Contents> load_csv(const Source& source);

// For files with [data.columns], of any format. `paths` are the files in order. All records are in memory. Nothing if
// they take much more memory than source.memory and the files, as records with many zeros or tokens may.
Result<std::optional<Contents>> load_columns(const Source& source, const std::vector<std::string>& paths);

// The same, but the records are read for each batch.
Result<std::unique_ptr<Dataset>> load_streamed(const Source& source, const std::vector<std::string>& paths);

// Checks that a data set of `found` records has the records [begin, end), and that they are at least 1 and at most
// kMaxRecords.
Status check_range(const Source& source, std::uint64_t begin, std::uint64_t end, std::uint64_t found);

// For text files. The records are those of all files; load_dataset() selects some of them.
Result<Text> load_text(const Source& source);

// If all `numbers` are whole numbers, they are labels: writes them to contents.labels and returns true.
// Otherwise they are targets: returns false.
bool take_labels(const std::vector<double>& numbers, Contents& contents);

}  // namespace disttrain::input
