#include "chiefd/core/job/views/orders.h"

#include <algorithm>

#include "chiefd/core/job/step_targets.h"

namespace disttrain::chiefd::views {
namespace {

// Returns the start value of the worker's clock, which counts the worker's own steps. In async, if data.sharding is
// "none", each worker goes through the whole data set. So the worker continues where the earlier process of its task
// was. In ssp the worker begins at the step of the slowest worker. In all other cases it begins at the global step.
Step clock_of(const JobFacts& job, const Member& worker) {
  const bool has_own_order = job.setup.config().data.sharding == Sharding::kNone;
  if (has_own_order && job.setup.config().train.mode == Mode::kAsync) {
    if (job.stage.is(Stage::kTrain)) {
      const auto lost = job.workers.lost_clocks().find(worker.task);
      return lost == job.workers.lost_clocks().end() ? Step() : lost->second;
    }
    if (!job.generation.restore()) return Step();
    const auto clock = job.generation.restore()->worker_clocks.find(worker.task);
    return clock == job.generation.restore()->worker_clocks.end() ? Step() : clock->second;
  }
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
                 .clock = clock_of(job, worker)};
}

}  // namespace disttrain::chiefd::views
