// Functions that load_dataset() calls. load_arrays() and load_csv() read all files of a source and join their records.
#pragma once

#include "common/result.h"
#include "workerd/input/dataset.h"
#include "workerd/input/memory_dataset.h"
#include "workerd/input/text_dataset.h"

namespace disttrain::input {

// For idx and npy files. Inputs and labels are in separate files.
Result<Contents> load_arrays(const Source& source);

Result<Contents> load_csv(const Source& source);

// For csv files with [data.columns].
Result<Contents> load_columns(const Source& source);

// For text files. The records are those of all files; load_dataset() selects some of them.
Result<Text> load_text(const Source& source);

// If all `numbers` are whole numbers of at least 0, they are labels: writes them to contents.labels and returns true.
// Otherwise they are targets: returns false.
bool take_labels(const std::vector<double>& numbers, Contents& contents);

}  // namespace disttrain::input
