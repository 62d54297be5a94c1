#include "engine/pjrt/step_plan.h"

#include <algorithm>

namespace disttrain::workerd::pjrt {
namespace {

constexpr std::size_t kScores = 2;  // the results begin with the loss and the accumulators

PlannedStage whole_step(const StableHloModel& model, std::size_t inputs) {
  PlannedStage whole;
  const std::size_t end = inputs + kScores + model.spec.variables.size();
  for (std::size_t value = 0; value < end; ++value) {
    if (value == inputs + 1 && model.spec.metrics.empty()) continue;
    (value < inputs ? whole.takes : whole.gives).push_back(static_cast<std::uint32_t>(value));
  }
  return whole;
}

}  // namespace

std::size_t step_inputs(const StableHloModel& model) {
  return model.spec.variables.size() + model.frozen.size() + model.spec.columns.size() + 1;
}

StepPlan plan_step(const StableHloModel& model) {
  StepPlan plan{.inputs = step_inputs(model), .values = 0, .stages = {}};
  for (const StableHloStage& stage : model.stages) plan.stages.push_back({stage.takes, stage.gives, {}, {}});
  if (plan.stages.empty()) plan.stages.push_back(whole_step(model, plan.inputs));

  const std::size_t first_result = plan.inputs + kScores;
  plan.values = first_result + model.spec.variables.size();
  for (const PlannedStage& stage : plan.stages)
    for (const std::uint32_t value : stage.gives) plan.values = std::max<std::size_t>(plan.values, value + 1);

  std::vector<std::size_t> given(plan.values, 0);  // by which stage
  std::vector<std::size_t> last(plan.values, 0);   // the last stage that takes the value, or else that gives it
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (const std::uint32_t value : plan.stages[s].gives) given[value] = last[value] = s;
    for (const std::uint32_t value : plan.stages[s].takes) last[value] = s;
  }
  // The first inputs are the variables of ModelSpec.
  for (std::uint32_t v = 0; v < model.spec.variables.size(); ++v)
    plan.stages[std::max(last[v], given[first_result + v])].settled.push_back(v);
  for (std::size_t value = first_result + model.spec.variables.size(); value < plan.values; ++value)
    plan.stages[last[value]].dropped.push_back(static_cast<std::uint32_t>(value));
  return plan;
}

}  // namespace disttrain::workerd::pjrt
