// A data set whose records are only numbers, for a trainer that reads the records themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/model.h"
#include "input/dataset.h"

namespace disttrain::input {

// Its only column, "record", int64, is the number of the record: 0 .. records - 1.
std::unique_ptr<Dataset> make_numbered_dataset(std::uint64_t records);

// The columns as which a trainer gets a data set: labels in their own type, and inputs too, unless `scale` makes
// float32 of them.
std::vector<ColumnSpec> columns_of(const Dataset& dataset, double scale);

}  // namespace disttrain::input
