// The names and places of [data.columns] in the arrays of a data set.
#pragma once

#include <vector>

#include "common/config/job_config.h"
#include "common/model.h"
#include "input/columns.h"

namespace disttrain::input {

// The columns of each array, in the order of [data.columns]. A column of tokens or bytes is an array of its own.
struct Parts {
  std::vector<ColumnPart> inputs;
  std::vector<ColumnPart> categories;
  std::vector<ColumnPart> labels;
  std::vector<ColumnPart> weights;
};

// The places are those that a ColumnEncoder gives to the columns.
Parts parts_of(const std::vector<ColumnSection>& columns, const FittedColumns& fitted);

}  // namespace disttrain::input
