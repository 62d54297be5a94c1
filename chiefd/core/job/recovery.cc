#include "chiefd/core/job/recovery.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/parts.h"
#include "chiefd/core/restarts.h"

namespace disttrain::chiefd {
namespace {

// Losses may be too far apart for job.restart_window, for example if each restore takes long and ends in a loss. So a
// job that hasn't got further since this many rollbacks, besides job.max_restarts, fails too.
constexpr std::uint32_t kMostFruitless = 100;

}  // namespace

Recovery::Recovery(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      held_(parts.held),
      events_(parts.events),
      condition_(parts.condition),
      progress_(parts.progress),
      rollbacks_(parts.rollbacks),
      generation_(parts.generation),
      workers_(parts.workers),
      pauses_(parts.pauses),
      gathering_(parts.gathering),
      loans_(parts.loans),
      fences_(parts.fences),
      start_failures_(parts.start_failures),
      suspicions_(parts.suspicions),
      pausing_(parts.pausing),
      regathering_(parts.regathering),
      folder_(parts.folder),
      schedule_(parts.schedule),
      checkpointing_(parts.checkpointing),
      closing_(parts.closing),
      ending_(parts.ending) {}

void Recovery::recover(Turn& turn, const Cause& cause, Loss loss) {
  if (condition_.has_ended() || stage_.is(Stage::kClose) || stage_.is(Stage::kQueued)) return;
  // A job that finishes early rolls back, as any job does. It finishes when it trains again.
  if (condition_.finishes_early()) condition_.end_stopping();
  if (condition_.is_stopping())
    return closing_.close(turn, JobState::kStopped,
                          condition_.end_reason() + " before the workers had finished their step: " + to_string(cause));
  const bool counts = loss == Loss::kCounts;
  const std::size_t times =
      counts ? count_loss(turn, generation_.owners().empty() ? kLostAtStart : kLossCounted, cause) : 0;
  if (times > setup_.config().job.max_restarts)
    return ending_.fail(turn, too_many_losses(ErrorCode::kFailed, cause, times), cause.task);
  // No shard was placed yet, so there is no generation to roll back.
  if (generation_.owners().empty()) {
    stage_.await_nobody();
    return gathering_.resume(turn);
  }
  const std::size_t fruitless = rollbacks_.fruitless_losses();
  if ((counts || loss == Loss::kSpared) && fruitless >= setup_.config().job.max_restarts + kMostFruitless)
    return ending_.fail(turn,
                        Error{ErrorCode::kFailed, cause.reason + "; the job has rolled back " +
                                                      std::to_string(fruitless) + " times without getting further"},
                        cause.task);
  if (!counts)
    events_.tell(turn, kRollsBack, loss == Loss::kLeft ? 1 : 2,
                 std::string(loss == Loss::kLink     ? "a link failed"
                             : loss == Loss::kSpared ? "the job starts again without a worker"
                                                     : "a task was told to end") +
                     ", which doesn't count as a loss: " + to_string(cause),
                 cause.task, cause.reason);
  // If a second loss comes during a rollback, the rollback keeps the step that the job had reached before the first
  // loss.
  const std::optional<Rollback>& before = rollbacks_.current();
  rollbacks_.begin(Rollback{cause, before ? before->began : turn.now, before ? before->gathers_since : turn.now,
                            turn.now + back_off(rollbacks_.fruitless()),
                            std::max(progress_.step(), before ? before->step : Step()),
                            progress_.has_heard_pacer() && (!before || before->is_step_known)});
  roll_back(turn, loss);
}

void Recovery::roll_back(Turn& turn, Loss loss) {
  rollbacks_.count_one(loss);
  drop_generation(turn);
  pausing_.tell_workers(turn, true, to_string(rollbacks_.current()->cause));
  stage_.enter(Stage::kRegather);
  stage_.set_deadline(turn.now + setup_.timeouts.setup);
  condition_.set(turn, JobState::kPaused, to_string(rollbacks_.current()->cause) + "; the job recovers");
  regathering_.regather(turn);
}

// After a restart of the chief, Restart::recall() counts losses by this event.
std::size_t Recovery::count_loss(Turn& turn, const std::string& kind, const Cause& cause) {
  const std::size_t times = rollbacks_.note_loss(turn.now, setup_.config().job.restart_window);
  events_.tell(turn, kind, 2,
               "this is loss number " + std::to_string(times) + " within job.restart_window (job.max_restarts is " +
                   std::to_string(setup_.config().job.max_restarts) + "): " + to_string(cause),
               cause.task, cause.reason);
  return times;
}

Error Recovery::too_many_losses(ErrorCode code, const Cause& cause, std::size_t times) const {
  return Error{code, cause.reason + "; this is loss number " + std::to_string(times) +
                         " within job.restart_window, and job.max_restarts is " +
                         std::to_string(setup_.config().job.max_restarts)};
}

// Drops all state of the generation.
void Recovery::drop_generation(Turn& turn) {
  checkpointing_.abandon(turn, "the job rolls back");
  folder_.stop_asking();
  held_.drop_sends();
  progress_.drop_generation();
  stage_.await_nobody();
  fences_.drop_generation();
  pauses_.drop_generation();
  suspicions_.clear();
  start_failures_.settle(turn);
  schedule_.drop_generation();
  loans_.drop_generation();
  workers_.drop_generation();
}

}  // namespace disttrain::chiefd
