// Checks whether a model can be trained on a data set. The worker does this when it has loaded the data, before the
// first step.
#pragma once

#include "common/model.h"
#include "common/result.h"
#include "workerd/input/dataset.h"

namespace disttrain::input {

// Checks that the model fits the data set. Errors: kConfig if the sizes differ, kData if a label is out of range. The
// error text names both numbers and the keys that can be changed. `section` is "data" or "evaluate".
Status fits(const Dataset& dataset, const ModelSpec& model, const std::string& section = "data");

// The number of target values per record that this model needs from Dataset::gather(). 0 if the model needs labels.
std::uint64_t target_width(const ModelSpec& model);

}  // namespace disttrain::input
