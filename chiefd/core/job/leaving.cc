#include "chiefd/core/job/leaving.h"

#include <string>

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {
namespace {

// Before a ps leaves, the job makes at most this many attempts to take a checkpoint. If all of them fail, the ps leaves
// without a checkpoint.
constexpr std::uint32_t kMostTries = 3;

}  // namespace

Leaving::Leaving(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      generation_(parts.generation),
      workers_(parts.workers),
      members_(parts.members),
      pausing_(parts.pausing),
      folder_(parts.folder),
      schedule_(parts.schedule),
      checkpointing_(parts.checkpointing),
      closing_(parts.closing) {}

std::optional<TaskId> Leaving::owner(const Tasks& tasks) const {
  if (!stage_.is(Stage::kTrain) || condition_.is_stopping() || !setup_.takes_checkpoints()) return std::nullopt;
  for (const Owner& owner : generation_.owners()) {
    const Task* task = tasks.find(owner.ps.task);
    if (task != nullptr && task->leaving && tasks.is_current(owner.ps)) return owner.ps.task;
  }
  return std::nullopt;
}

bool Leaving::may_go(const Member& member) const {
  if (!members_.uses(member)) return true;
  switch (stage_.at()) {
    case Stage::kTrain:
      return may_go_in_training(member);
    case Stage::kReclaim:
    case Stage::kSettle:
    case Stage::kFinalCut:
      return false;
    case Stage::kEvaluate:
      return !generation_.is_owner(member) && !stage_.awaits(member);
    case Stage::kClose:
      return closing_.lets_go(member);
    default:
      return true;  // the job has nothing to save at these stages
  }
}

bool Leaving::may_go_in_training(const Member& member) const {
  if (!generation_.is_owner(member))
    return !workers_.is_unfinished(member) || workers_.is_joining(member) || workers_.has_stopped(member);
  const bool can_be_saved = setup_.takes_checkpoints() && folder_.is_open() && schedule_.failed_saves() < kMostTries;
  return !condition_.is_stopping() && (schedule_.is_saved() || !can_be_saved);
}

void Leaving::advance(Turn& turn) {
  if (!stage_.is(Stage::kTrain) || condition_.is_stopping()) return;
  for (const Member& member : turn.tasks.leaving()) {
    if (!workers_.is_unfinished(member) || workers_.is_joining(member)) continue;
    if (workers_.tell_to_stop(member)) turn.send(member.task, StopJob{setup_.id, generation_.number()});
  }
  const std::optional<TaskId> ps = owner(turn.tasks);
  if (!ps || schedule_.is_saved()) return;
  if (condition_.state() == JobState::kRunning) {
    const std::string reason = to_string(*ps) + " was told to end; the job takes a checkpoint first";
    pausing_.tell_workers(turn, true, reason);
    condition_.set(turn, JobState::kPaused, reason);
    stage_.wait_since(turn.now);
    schedule_.try_at(turn.now);
  }
  if (checkpointing_.is_under_way() && !checkpointing_.is_holding())
    checkpointing_.cut_now(turn);  // the workers pause, so a later step wouldn't come
  checkpointing_.advance(turn);
}

}  // namespace disttrain::chiefd
