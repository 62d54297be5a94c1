// Rolls a job back: the job starts again with the next generation. The connected ps tasks make all shards anew from one
// checkpoint, and the workers open the job again. Messages that carry the number of the earlier generation are refused.
// In stage kRegather the job waits for its tasks; chiefd/core/job/rules/regather.h decides for which, and how long.
#include "chiefd/core/job/flow/flow.h"

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "chiefd/core/job/rules/recovery.h"
#include "chiefd/core/job/rules/regather.h"
#include "chiefd/core/restarts.h"

namespace disttrain::chiefd::flow {
namespace {

// Drops all state of the generation.
void drop_generation(JobFacts& job, Turn& turn) {
  abandon_attempt(job, turn, "the job rolls back");
  job.folder.ask_again.reset();
  job.held.drop_sends();
  job.progress.drop_generation();
  job.stage.await_nobody();
  job.fences.all.clear();
  job.pauses.drop_generation();
  job.suspicions.clear();
  settle_start_failures(job, turn);
  job.schedule.drop_generation();
  job.loans.drop_generation();
  job.workers.drop_generation();
}

}  // namespace

void recover(JobFacts& job, Turn& turn, const Cause& cause, Loss loss) {
  const Verdict after = rules::after_loss(job, cause, loss);
  if (!std::holds_alternative<Recover>(after)) return carry_out(job, turn, after);
  // A job that finishes early finishes when it trains again.
  if (job.condition.finishes_early()) job.condition.end_stopping();
  const bool is_placed = !job.generation.owners().empty();
  const bool counts = loss == Loss::kCounts;
  const std::size_t losses = counts ? count_loss(job, turn, is_placed ? kLossCounted : kLostAtStart, cause) : 0;
  carry_out(job, turn, rules::recovery(job, cause, loss, losses));
}

void begin_rollback(JobFacts& job, Turn& turn, const Cause& cause, Loss loss) {
  if (loss != Loss::kCounts)
    tell(job, turn, kRollsBack, loss == Loss::kLeft ? 1 : 2,
         std::string(loss == Loss::kLink     ? "a link failed"
                     : loss == Loss::kSpared ? "the job starts again without a worker"
                                             : "a task was told to end") +
             ", which doesn't count as a loss: " + to_string(cause),
         cause.task, cause.reason);
  // If a second loss comes during a rollback, the rollback keeps the step that the job had reached before the first
  // loss.
  const std::optional<Rollback>& before = job.rollbacks.current();
  job.rollbacks.begin(Rollback{cause, before ? before->began : turn.now, before ? before->gathers_since : turn.now,
                               turn.now + back_off(job.rollbacks.fruitless()),
                               std::max(job.progress.step(), before ? before->step : Step()),
                               job.progress.has_heard_pacer() && (!before || before->is_step_known)});
  roll_back(job, turn, loss);
}

void roll_back(JobFacts& job, Turn& turn, Loss loss) {
  job.rollbacks.count_one(loss);
  drop_generation(job, turn);
  tell_pause(job, turn, true, to_string(job.rollbacks.current()->cause));
  job.stage.enter(Stage::kRegather);
  job.stage.set_deadline(turn.now + job.setup.timeouts.setup);
  set_state(job, turn, JobState::kPaused, to_string(job.rollbacks.current()->cause) + "; the job recovers");
  regather(job, turn);
}

// After a restart of the chief, recall() counts losses by this event.
std::size_t count_loss(JobFacts& job, Turn& turn, const std::string& kind, const Cause& cause) {
  const std::size_t times = job.rollbacks.note_loss(turn.now, job.setup.config().job.restart_window);
  tell(job, turn, kind, 2,
       "this is loss number " + std::to_string(times) + " within job.restart_window (job.max_restarts is " +
           std::to_string(job.setup.config().job.max_restarts) + "): " + to_string(cause),
       cause.task, cause.reason);
  return times;
}

void await_tasks(JobFacts& job, const AwaitTasks& verdict) {
  job.start.lacks_memory = verdict.lacks_memory;
  job.rollbacks.explain(verdict.shortage);
  job.condition.explain(to_string(job.rollbacks.current()->cause) + "; " + verdict.shortage);
}

void regather(JobFacts& job, Turn& turn) {
  job.start.lacks_memory = false;
  const Verdict owners = rules::next_owners(job, turn.tasks, turn.now);
  carry_out(job, turn, owners);
  carry_out_all(job, turn, rules::next_invitations(job, turn.tasks, turn.now));
  const Verdict roster = rules::next_roster(job, turn.tasks, turn.now);
  carry_out(job, turn, roster);
  if (std::holds_alternative<Fail>(roster)) return;
  const Verdict missing = rules::next_missing(job, turn.tasks, turn.now, owners);
  if (std::holds_alternative<AwaitTasks>(missing)) return carry_out(job, turn, missing);
  const Verdict places = rules::next_places(job, turn.tasks);
  carry_out(job, turn, places);
  if (std::holds_alternative<AwaitTasks>(places)) return;
  carry_out_all(job, turn, rules::next_left_out(job, turn.tasks));
  carry_out(job, turn, rules::next_begins(job, turn.tasks, turn.now));
}

void begin_next(JobFacts& job, Turn& turn) {
  job.workers.use_roster();
  job.generation.draw_numbers(turn.term);
  if (!job.setup.takes_checkpoints()) {
    job.generation.restore_from(std::nullopt);
    return begin_generation(job, turn);
  }
  job.stage.enter(Stage::kFind);
  job.stage.set_deadline(turn.now + job.setup.timeouts.setup);
  ask_newest(job, turn);
}

}  // namespace disttrain::chiefd::flow
