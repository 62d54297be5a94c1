// Records for a prediction, whose files may have no labels and no weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "input/dataset.h"

namespace disttrain::input {

// `source` without the columns that a prediction doesn't need: the label and the weight of [data.columns].
Source without_labels(Source source);

// A model also takes the columns that without_labels() has left out. This returns `dataset` with these arrays, which
// are 0 in all records. `columns` are those of job.toml. If they are empty, it returns `dataset` as it is.
std::unique_ptr<Dataset> with_zero_labels(std::unique_ptr<Dataset> dataset, const std::vector<ColumnSection>& columns);

}  // namespace disttrain::input
