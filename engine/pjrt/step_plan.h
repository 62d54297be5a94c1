// A plan of a step says which values are final, and which are dropped, when a stage has run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/pjrt/stablehlo_model.h"

namespace disttrain::workerd::pjrt {

// The numbers are those of StableHloStage.
struct PlannedStage {
  std::vector<std::uint32_t> takes;
  std::vector<std::uint32_t> gives;
  // The variables of ModelSpec whose results were given by this stage or an earlier one, and whose values no later
  // stage takes. Each variable is settled by exactly one stage.
  std::vector<std::uint32_t> settled;
  std::vector<std::uint32_t> dropped;  // arrays passed between stages that no later stage takes
};

struct StepPlan {
  std::size_t inputs = 0;  // the number of the loss; the accumulators and the variables' results follow
  std::size_t values = 0;
  std::vector<PlannedStage> stages;  // at least one
};

// The number of inputs of a step: all variables, the columns and the seed.
std::size_t step_inputs(const StableHloModel& model);

// A model without stages has one stage, which takes all inputs and gives all results. The stages must fit together as
// StableHloStage says.
StepPlan plan_step(const StableHloModel& model);

}  // namespace disttrain::workerd::pjrt
