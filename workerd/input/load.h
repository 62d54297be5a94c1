// The parts of load_dataset(): the files of one format, read and joined.
#pragma once

#include "common/result.h"
#include "workerd/input/dataset.h"
#include "workerd/input/memory_dataset.h"

namespace disttrain::input {

// idx and npy: arrays of inputs, and arrays of labels in separate files.
Result<Contents> load_arrays(const Source& source);

Result<Contents> load_csv(const Source& source);

// Whole numbers from 0 are labels: fills contents.labels from `numbers` and returns true. Otherwise returns false: they
// are targets.
bool take_labels(const std::vector<double>& numbers, Contents& contents);

}  // namespace disttrain::input
