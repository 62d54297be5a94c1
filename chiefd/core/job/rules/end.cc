#include "chiefd/core/job/rules/end.h"

#include <algorithm>
#include <optional>

#include "chiefd/core/job/views/members.h"

namespace disttrain::chiefd::rules {
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

// A job that trains doesn't close at once, because it first saves its progress. In stage kTrain the workers are told to
// stop. In the stages kSettle and kFinalCut the job is about to end anyway. After a restart of the chief (stage
// kReclaim) the stop waits until the tasks are back.
Verdict stopped_by_client(const JobFacts& job, const std::string& reason) {
  // A job that finishes early would train on after a rollback. A client's stop is for good.
  const bool is_stopped = job.condition.is_stopping() && !job.condition.finishes_early();
  if (job.condition.has_ended() || job.stage.traits().has_closed || is_stopped) return Stay{};
  if (job.stage.is(Stage::kQueued)) return Release{reason};
  const bool ends_by_itself =
      job.stage.is(Stage::kReclaim) || job.stage.is(Stage::kSettle) || job.stage.is(Stage::kFinalCut);
  if (job.stage.is(Stage::kTrain) || ends_by_itself) return StopSteps{reason, ends_by_itself};
  const std::string when = job.stage.is(Stage::kEvaluate) ? " during its last evaluation"
                           : job.rollbacks.current()      ? " while the job recovered"
                                                          : " before the job trained";
  return Close{JobState::kStopped, reason + when};
}

Verdict killed_by_client(const JobFacts& job, const std::string& reason) {
  if (job.condition.has_ended() || job.stage.is(Stage::kClose)) return Stay{};
  if (job.stage.is(Stage::kQueued)) return Release{reason};
  return Close{JobState::kStopped, reason};
}

Verdict after_last_step(const JobFacts& job) {
  const std::optional<CheckpointRecord>& newest = job.folder.newest;
  const Step step = job.progress.step();
  const bool is_taken = newest && newest->generation == job.generation.number() && newest->step == step;
  const bool is_same = job.generation.restore() && job.generation.restore()->step == step;
  // A job that has made no step has nothing to save. Its shards may have no values, if a worker was to give them.
  const bool has_trained = step != Step();
  const bool saves = job.setup.takes_checkpoints() && job.setup.config().checkpoint.at_end;
  if (!saves || is_taken || is_same || !has_trained) return EvaluateLast{};
  return TakeLastCheckpoint{};
}

bool may_go(const JobFacts& job, const Member& member) {
  if (!views::uses(job, member)) return true;
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
    case Stage::kQueued:
    case Stage::kGather:
    case Stage::kDescribe:
    case Stage::kFolder:
    case Stage::kInit:
    case Stage::kRegather:
    case Stage::kFind:
    case Stage::kGeneration:
    case Stage::kCreate:
    case Stage::kOpen:
    case Stage::kRoster:
    case Stage::kReleased:
      return true;  // the job has nothing to save
  }
  return true;
}

}  // namespace disttrain::chiefd::rules
