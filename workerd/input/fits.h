// Whether a model can be trained on a data set: checked when the data is loaded, before the first step.
#pragma once

#include "common/model.h"
#include "common/result.h"
#include "workerd/input/dataset.h"

namespace disttrain::input {

// Errors (kConfig: the model and the data don't fit; kData: a label is out of range) name both numbers and the keys to
// change. `section`: "data" or "evaluate".
Status fits(const Dataset& dataset, const ModelSpec& model, const std::string& section = "data");

// Values per record of Dataset::gather()'s targets for this model; 0: the model takes labels.
std::uint64_t target_width(const ModelSpec& model);

}  // namespace disttrain::input
