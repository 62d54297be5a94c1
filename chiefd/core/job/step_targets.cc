#include "chiefd/core/job/step_targets.h"

#include <algorithm>

namespace disttrain::chiefd {
namespace {

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

// Returns the smaller of two limits. 0 means no limit.
std::uint64_t smaller_limit(std::uint64_t a, std::uint64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

// Returns the step at which all epochs are done: the steps so far, plus the steps that the current workers need for the
// records that are left. The steps so far may have been made by another number of workers.
std::uint64_t end_of_epochs(const TrainSection& train, std::uint64_t records, const PacerReport& report,
                            std::uint64_t workers) {
  if (train.epochs == 0) return 0;
  // With backup workers a step takes only the batches of `aggregate` workers.
  const std::uint64_t in_step = train.aggregate != 0 ? train.aggregate : std::max<std::uint64_t>(workers, 1);
  const std::uint64_t ranks = train.mode == Mode::kSync ? in_step : 1;
  const std::uint64_t of_an_epoch = ceil_div(records, train.step_records() * ranks);
  const std::uint64_t touched = report.complete_epochs + report.ledger.size();
  std::uint64_t left = touched < train.epochs ? (train.epochs - touched) * of_an_epoch : 0;
  for (const EpochLedger& epoch : report.ledger) {
    std::uint64_t visited = 0;
    for (const Interval& interval : epoch.visited) visited += interval.end - interval.begin;
    left += ceil_div(records - std::min(records, visited), train.step_records() * ranks);
  }
  return report.global_step.value + left;
}

// Returns the step at which all workers are done, if each worker goes through the whole data set. If a worker is lost,
// counts only the steps that this worker has made.
std::uint64_t end_of_whole_sets(const TrainSection& train, std::uint64_t records, const Workers& workers) {
  if (train.epochs == 0) return 0;
  const std::vector<Member>& roster = workers.roster().members;
  std::uint64_t steps =
      train.epochs * ceil_div(records, std::max<std::uint64_t>(train.step_records(), 1)) * roster.size();
  for (const auto& [task, batches] : workers.own_batches())
    if (std::none_of(roster.begin(), roster.end(), [task = task](const Member& member) { return member.task == task; }))
      steps += batches.value;
  return steps;
}

}  // namespace

std::uint64_t effective_steps(const JobSetup& setup, const GenerationPlan& generation) {
  const TrainSection& train = setup.config().train;
  if (train.mode != Mode::kSync || setup.config().data.sharding != Sharding::kNone || !generation.described())
    return train.steps;
  return smaller_limit(train.steps,
                       train.epochs * ceil_div(generation.described()->train_records, train.step_records()));
}

SharedJobConfig resolved_config(const JobSetup& setup, const GenerationPlan& generation) {
  auto resolved = std::make_shared<JobConfig>(setup.config());
  resolved->train.steps = effective_steps(setup, generation);
  return resolved;
}

std::uint64_t steps_target(const JobSetup& setup, const GenerationPlan& generation, const Progress& progress,
                           const Workers& workers) {
  const TrainSection& train = setup.config().train;
  if (!generation.described()) return train.steps;
  const std::uint64_t records = generation.described()->train_records;
  if (setup.config().data.sharding == Sharding::kLease)
    return smaller_limit(train.steps,
                         end_of_epochs(train, records, progress.report(), workers.roster().members.size()));
  if (train.mode == Mode::kSync) return effective_steps(setup, generation);
  return smaller_limit(train.steps, end_of_whole_sets(train, records, workers));
}

}  // namespace disttrain::chiefd
