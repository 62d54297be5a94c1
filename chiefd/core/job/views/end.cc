#include "chiefd/core/job/views/end.h"

#include <algorithm>
#include <optional>

#include "chiefd/core/job/report.h"
#include "chiefd/core/job/views/members.h"

namespace disttrain::chiefd::views {
namespace {

// Before a ps leaves, the job makes at most this many attempts to take a checkpoint. If all of them fail, the ps leaves
// without a checkpoint.
constexpr std::uint32_t kMostTries = 3;

// True if the closing job doesn't need this task any more. A task that was told to end (SIGTERM) may then leave.
bool lets_go(const JobFacts& job, const Member& member) {
  return job.closing.is_end_written && !job.stage.awaits(member) &&
         std::find(job.closing.to_close.begin(), job.closing.to_close.end(), member) == job.closing.to_close.end();
}

bool may_go_in_training(const JobFacts& job, const Member& member) {
  if (!job.generation.is_owner(member))
    return !job.workers.is_unfinished(member) || job.workers.is_joining(member) || job.workers.has_stopped(member);
  const bool can_be_saved =
      job.setup.takes_checkpoints() && job.folder.is_open && job.schedule.failed_saves() < kMostTries;
  return !job.condition.is_stopping() && (job.schedule.is_saved() || !can_be_saved);
}

}  // namespace

std::optional<TaskId> leaving_owner(const JobFacts& job, const Tasks& tasks) {
  if (!job.stage.is(Stage::kTrain) || job.condition.is_stopping() || !job.setup.takes_checkpoints())
    return std::nullopt;
  for (const Owner& owner : job.generation.owners()) {
    const Task* task = tasks.find(owner.ps.task);
    if (task != nullptr && task->leaving && tasks.is_current(owner.ps)) return owner.ps.task;
  }
  return std::nullopt;
}

bool may_go(const JobFacts& job, const Member& member) {
  if (!uses(job, member)) return true;
  switch (job.stage.at()) {
    case Stage::kTrain:
      return may_go_in_training(job, member);
    case Stage::kReclaim:
    case Stage::kSettle:
    case Stage::kFinalCut:
      return false;
    case Stage::kEvaluate:
      return !job.generation.is_owner(member) && !job.stage.awaits(member);
    case Stage::kClose:
      return lets_go(job, member);
    default:
      return true;  // the job has nothing to save at these stages
  }
}

EndRecord end_record(const JobFacts& job, Instant now) {
  const JobStatus status = report::status(job, now);
  EndRecord end;
  end.job = job.setup.id;
  end.state = job.closing.end;
  end.reason = job.condition.end_reason();
  end.generation = status.generation;
  end.step = Step(status.global_step);
  end.steps_target = status.steps_target;
  end.examples = status.examples;
  end.training = job.progress.training();
  end.epochs = status.epoch;
  end.late = status.late;
  end.skipped = status.skipped;
  end.staleness = status.staleness;
  end.loss = status.loss;
  end.metrics = status.metrics;
  end.evaluation = status.evaluation;
  end.code = status.code;
  end.root_cause = status.root_cause;
  return end;
}

}  // namespace disttrain::chiefd::views
