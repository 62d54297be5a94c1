#include "chiefd/core/job/views/orders.h"

#include <algorithm>
#include <map>

#include "chiefd/core/job/step_targets.h"
#include "common/mutant.h"

namespace disttrain::chiefd::views {
namespace {

Step at(const std::map<TaskId, Step>& clocks, TaskId worker) {
  const auto found = clocks.find(worker);
  return found == clocks.end() ? Step() : found->second;
}

// If data.sharding is "none", each worker goes through the whole data set in its own order. Returns how many batches
// of it the task's earlier processes have done, by the parameters that the generation has. In sync each step has one
// batch of each worker (GenerationPlan::check_restore refuses other checkpoints). In async and ssp the pacer counts
// them: those of the checkpoint with which the generation begins, and those since.
Step batches_of(const JobFacts& job, const Member& worker) {
  if (job.setup.config().data.sharding != Sharding::kNone) return Step();
  if (job.setup.is_sync()) return job.progress.step();
  if (DISTTRAIN_MUTANT(kOwnOrderForgotten)) return at(job.workers.own_batches(), worker.task);
  const Step before = job.generation.restore() ? at(job.generation.restore()->batches, worker.task) : Step();
  return std::max(before, at(job.workers.own_batches(), worker.task));
}

// Returns the start value of the worker's clock, which counts the worker's own steps. In async with an order of its own
// it counts the order's batches. In ssp the worker begins at the step of the slowest worker. In all other cases it
// begins at the global step.
Step clock_of(const JobFacts& job, const Member& worker) {
  const bool has_own_order = job.setup.config().data.sharding == Sharding::kNone;
  if (has_own_order && job.setup.config().train.mode == Mode::kAsync) return batches_of(job, worker);
  if (job.setup.config().train.mode == Mode::kSsp)
    return std::max(job.progress.report().slowest_clock,
                    job.generation.restore() ? job.generation.restore()->step : Step());
  return job.progress.step();
}

}  // namespace

OpenJob order_to_open(const JobFacts& job, const Member& worker) {
  return OpenJob{.job = job.setup.id,
                 .generation = job.generation.number(),
                 .token = job.generation.token(),
                 .config = resolved_config(job.setup, job.generation),
                 .layout = job.generation.layout(),
                 .owners = job.generation.owners(),
                 .roster = job.workers.roster(),
                 .train_records = job.generation.described()->train_records,
                 .train_hash = job.generation.described()->train_hash,
                 .evaluates = job.workers.evaluator() == worker && !job.setup.uses_evaluators(),
                 .clock = clock_of(job, worker),
                 .batches = batches_of(job, worker).value};
}

}  // namespace disttrain::chiefd::views
