// Binds the columns of a model to the arrays of a data set, or to pieces of them.
//
// With [data.columns] a model may name its columns as they are named there, or take the arrays "inputs", "categories"
// and "labels" ("targets" means the labels, too). A column of tokens or bytes is an array, which has the column's name.
// An array's name comes before a column's. If none of the model's names occurs in the data, its column i takes array i.
#pragma once

#include <vector>

#include "common/model.h"
#include "common/result.h"
#include "input/dataset.h"

namespace disttrain::input {

// Whether the columns `wants` of a model are bound by their names to `has`, the columns of a data set.
bool are_bound_by_name(const std::vector<DatasetColumn>& has, const std::vector<ColumnSpec>& wants);

// The piece of a data set's arrays that a name means; null if the name means a whole array or nothing.
const ColumnPart* part_named(const std::vector<DatasetColumn>& has, const std::string& name);

// For each of `wants`, the values that it takes. It doesn't check their shapes and types (fits.h). Errors, kConfig: the
// data has no column of this name, or fewer columns than the model.
Result<std::vector<Binding>> bind_columns(const std::vector<DatasetColumn>& has, const std::vector<ColumnSpec>& wants);

}  // namespace disttrain::input
