// These functions check the model that a trainer describes, and make a ModelSpec of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/layout.h"
#include "common/model.h"
#include "common/result.h"
#include "engine/trainer/trainer_protocol.h"

namespace disttrain::workerd {

// The engine's description. `columns`: those of the job's [data]; empty if the trainer reads a data set of its own.
ModelSpec spec_of(const TrainerModel& model, const std::vector<ColumnSpec>& columns);

// Whether the job has exactly one source of records. The error's text goes on after "the trainer". Errors: kConfig.
Status check_data(const TrainerModel& model, const std::vector<ColumnSpec>& columns);

// Returns what is wrong with the first initial value that is NaN or infinite, or "". The text goes on after "the
// trainer". `values` are laid out as `layout` says.
std::string problem_with_values(const Layout& layout, std::span<const float> values);

}  // namespace disttrain::workerd
