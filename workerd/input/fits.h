// Whether a model can be trained with a data set: found at load, before a step is made.
#pragma once

#include "common/model.h"
#include "common/result.h"
#include "workerd/input/dataset.h"

namespace disttrain::input {

// Errors (kConfig: the model and the data don't fit; kData: a label is out of range) name both numbers and the keys to
// change. `section`: "data" or "evaluate".
Status fits(const Dataset& dataset, const ModelSpec& model, const std::string& section = "data");

// Values per record of Dataset::gather()'s targets that this model is compared with; 0: it takes labels.
std::uint64_t target_width(const ModelSpec& model);

}  // namespace disttrain::input
