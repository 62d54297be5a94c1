// Tasks that were told to end (SIGTERM) and leave in good order. See job.h and LeaveRequest.
//
// A worker stops at its next push boundary; then it goes as a lost one does, but nothing of it is under way, and nobody
// counts it. Before a ps goes, the workers pause and a checkpoint is taken after which nothing is applied, so that the
// rollback to it costs no step.
#include <algorithm>

#include "chiefd/core/job.h"

namespace disttrain::chiefd {
namespace {

// At the checkpoint before a ps goes.
constexpr std::uint32_t kMostTries = 3;

}  // namespace

// Of its owners, whose shards are to be saved first.
std::optional<TaskId> Job::leaving_owner(const Tasks& tasks) const {
  if (stage_ != Stage::kTrain || stopping_ || !takes_checkpoints()) return std::nullopt;
  for (const Owner& owner : owners_) {
    const Task* task = tasks.find(owner.ps.task);
    if (task != nullptr && task->leaving && tasks.is_current(owner.ps)) return owner.ps.task;
  }
  return std::nullopt;
}

bool Job::may_go(const Member& member) const {
  if (!uses(member)) return true;
  switch (stage_) {
    case Stage::kTrain:
      break;
    case Stage::kReclaim:
    case Stage::kSettle:
    case Stage::kFinalCut:
      return false;
    case Stage::kEvaluate:
      return !is_owner(member) && awaited_.count(member) == 0;
    case Stage::kClose:
      return is_end_written_ && awaited_.count(member) == 0 &&
             std::find(to_close_.begin(), to_close_.end(), member) == to_close_.end();
    default:
      return true;  // nothing was trained since the last checkpoint
  }
  if (is_owner(member)) {
    const bool can_be_saved = takes_checkpoints() && is_folder_open_ && failed_saves_ < kMostTries;
    return !stopping_ && (is_saved_ || !can_be_saved);
  }
  return unfinished_.count(member) == 0 || joining_.count(member) != 0 || stopped_.count(member) != 0;
}

void Job::advance_leavers(Turn& turn) {
  if (stage_ != Stage::kTrain || stopping_) return;
  for (const Member& member : turn.tasks.leaving()) {
    if (unfinished_.count(member) == 0 || joining_.count(member) != 0) continue;
    if (told_to_stop_.insert(member).second) send(turn, member.task, StopJob{id(), generation_});
  }
  const std::optional<TaskId> ps = leaving_owner(turn.tasks);
  if (!ps || is_saved_) return;
  if (state_ == JobState::kRunning) {
    const std::string reason = to_string(*ps) + " was told to end; takes a checkpoint first";
    pause_workers(turn, true, reason);
    set_state(turn, JobState::kPaused, reason);
    next_try_ = waits_since_ = turn.now;
  }
  if (attempt_ && !attempt_->holds) cut_now(turn);  // nobody makes the step that it may wait for
  advance_attempt(turn);
}

}  // namespace disttrain::chiefd
