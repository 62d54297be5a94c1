// Checks whether a model can be trained on a data set. The worker does this when it has loaded the data, before the
// first step.
#pragma once

#include "common/model.h"
#include "common/result.h"
#include "workerd/input/dataset.h"

namespace disttrain::input {

// Checks that the model fits the data set, which was loaded from `source`. Errors: kConfig if the sizes differ, kData
// if a label is out of range. The error text says what the data set has, what the model expects, and which setting
// can be changed.
Status fits(const Dataset& dataset, const ModelSpec& model, const Source& source);

// The number of target values per record that this model needs from Dataset::gather(). 0 if the model needs labels.
std::uint64_t target_width(const ModelSpec& model);

}  // namespace disttrain::input
